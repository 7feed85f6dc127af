package main

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

func init() {
	// What kubectl makes of a YAML document before it decodes any type.
	register("yaml.json", func(params json.RawMessage) (any, error) {
		var question struct {
			Text []byte `json:"text"`
		}
		if err := json.Unmarshal(params, &question); err != nil {
			return nil, err
		}
		text, err := yaml.YAMLToJSONStrict(question.Text)
		if err != nil {
			return map[string]any{"error": err.Error()}, nil
		}
		// As a string: a JSON number would lose its digits on the way to the caller.
		return map[string]any{"json": string(text)}, nil
	})
}
