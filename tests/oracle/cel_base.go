package main

import (
	"encoding/json"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// celBase is Kubernetes' base environment with cel.bind: everything but the device.
var celBase = sync.OnceValues(func() (*cel.Env, error) {
	env, err := environment.MustBaseEnvSet(version.MajorMinor(1, 37)).Env(environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	return env.Extend(ext.Bindings(ext.BindingsVersion(0)))
})

type celBaseAnswer struct {
	Refused string  `json:"refused,omitempty"`
	Least   uint64  `json:"least"`
	Most    uint64  `json:"most"`
	Value   any     `json:"value,omitempty"`
	Error   string  `json:"error,omitempty"`
	Cost    *uint64 `json:"cost,omitempty"`
}

func init() {
	// cel.base evaluates expressions of any type without variables: {"expressions": [...]} -> one answer each.
	register("cel.base", func(params json.RawMessage) (any, error) {
		var question struct {
			Expressions []string `json:"expressions"`
		}
		if err := json.Unmarshal(params, &question); err != nil {
			return nil, err
		}
		env, err := celBase()
		if err != nil {
			return nil, err
		}
		answers := make([]celBaseAnswer, 0, len(question.Expressions))
		for _, expression := range question.Expressions {
			answers = append(answers, answerForBase(env, expression))
		}
		return answers, nil
	})
}

func answerForBase(env *cel.Env, expression string) (answer celBaseAnswer) {
	checked, issues := env.Compile(expression)
	if issues != nil {
		return celBaseAnswer{Refused: issues.String()}
	}
	program, err := env.Program(checked, cel.CostLimit(1_000_000))
	if err != nil {
		return celBaseAnswer{Refused: err.Error()}
	}
	estimate, err := env.EstimateCost(checked, &library.CostEstimator{})
	if err != nil {
		return celBaseAnswer{Refused: err.Error()}
	}
	answer.Least, answer.Most = estimate.Min, estimate.Max
	value, details, err := program.Eval(map[string]any{})
	if details != nil {
		answer.Cost = details.ActualCost()
	}
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer.Value = celTyped(value)
	}
	return answer
}
