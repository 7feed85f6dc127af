package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

func init() {
	register("cdi.parse", cdiParse)
	register("cdi.cache", cdiCache)
	register("cdi.inject", cdiInject)
	register("cdi.oci", cdiOCI)
	register("cdi.name", cdiName)
	register("cdi.annotate", cdiAnnotate)
	register("cdi.annotated", cdiAnnotated)
}

type cdiVerdict struct {
	Accepted bool            `json:"accepted"`
	Decoded  bool            `json:"decoded"`
	Error    string          `json:"error,omitempty"`
	Minimum  string          `json:"minimum,omitempty"`
	Spec     json.RawMessage `json:"spec,omitempty"`
}

// guarded runs f; a panic of the library becomes an error, because it is one of the library's answers.
func guarded(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return f()
}

// cdiParse reads a spec the way a cache reads a file: decode, then validate.
func cdiParse(params json.RawMessage) (any, error) {
	var in struct{ Data []byte }
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	var verdict cdiVerdict
	err := guarded(func() error {
		raw, err := cdi.ParseSpec(in.Data)
		if err != nil {
			return err
		}
		if raw == nil {
			return fmt.Errorf("no Spec data")
		}
		verdict.Decoded = true
		if verdict.Spec, err = encode(raw); err != nil {
			return err
		}
		minimum, err := specs.MinimumRequiredVersion(raw)
		if err != nil {
			return err
		}
		verdict.Minimum = minimum
		dir, err := os.MkdirTemp("", "cdi-oracle-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "spec.yaml")
		if err := os.WriteFile(path, in.Data, 0o600); err != nil {
			return err
		}
		_, err = cdi.ReadSpec(path, 0)
		return err
	})
	verdict.Accepted = err == nil
	if err != nil {
		verdict.Error = err.Error()
	}
	return verdict, nil
}

func cdiNewCache(directories []string) (cache *cdi.Cache, err error) {
	err = guarded(func() error {
		var err error
		cache, err = cdi.NewCache(cdi.WithSpecDirs(directories...), cdi.WithAutoRefresh(false))
		return err
	})
	return cache, err
}

func cdiCache(params json.RawMessage) (any, error) {
	var in struct{ Directories []string }
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	cache, err := cdiNewCache(in.Directories)
	if err != nil {
		return map[string]any{"panic": err.Error()}, nil
	}
	failures := map[string]int{}
	for path, errs := range cache.GetErrors() {
		failures[path] = len(errs)
	}
	owners := map[string]string{}
	for _, name := range cache.ListDevices() {
		owners[name] = cache.GetDevice(name).GetSpec().GetPath()
	}
	return map[string]any{
		"devices": owners,
		"vendors": cache.ListVendors(),
		"classes": cache.ListClasses(),
		"errors":  failures,
	}, nil
}

type cdiInjection struct {
	OCI        json.RawMessage `json:"oci,omitempty"`
	Unresolved []string        `json:"unresolved,omitempty"`
	Error      string          `json:"error,omitempty"`
}

func decodeOCI(text json.RawMessage) (*oci.Spec, error) {
	var spec oci.Spec
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&spec); err != nil {
		return nil, err
	}
	return &spec, nil
}

// cdiInject answers several requests from one cache, each with a runtime spec of its own.
func cdiInject(params json.RawMessage) (any, error) {
	var in struct {
		Directories []string
		Requests    []struct {
			OCI   json.RawMessage
			Names []string
		}
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	cache, err := cdiNewCache(in.Directories)
	if err != nil {
		return nil, err
	}
	results := make([]cdiInjection, 0, len(in.Requests))
	for _, request := range in.Requests {
		spec, err := decodeOCI(request.OCI)
		if err != nil {
			return nil, err
		}
		var result cdiInjection
		err = guarded(func() error {
			var err error
			result.Unresolved, err = cache.InjectDevices(spec, request.Names...)
			return err
		})
		if err != nil {
			result.Error = err.Error()
		} else if result.OCI, err = encode(spec); err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// cdiOCI writes runtime specs again as Go does, so that what Go leaves out or adds makes no difference.
func cdiOCI(params json.RawMessage) (any, error) {
	var in struct{ Specs []json.RawMessage }
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	results := make([]json.RawMessage, 0, len(in.Specs))
	for _, text := range in.Specs {
		spec, err := decodeOCI(text)
		if err != nil {
			return nil, err
		}
		again, err := encode(spec)
		if err != nil {
			return nil, err
		}
		results = append(results, again)
	}
	return results, nil
}

func cdiName(params json.RawMessage) (any, error) {
	var in struct{ Name string }
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	vendor, class, name, err := parser.ParseQualifiedName(in.Name)
	result := map[string]any{"accepted": err == nil, "parts": []string{vendor, class, name}}
	if err != nil {
		result["error"] = err.Error()
	}
	return result, nil
}

func cdiAnnotate(params json.RawMessage) (any, error) {
	var in struct {
		Annotations map[string]string
		Plugin      string
		Device      string
		Names       []string
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	annotations, err := cdi.UpdateAnnotations(in.Annotations, in.Plugin, in.Device, in.Names)
	result := map[string]any{"accepted": err == nil}
	if err != nil {
		result["error"] = err.Error()
	} else {
		result["annotations"] = annotations
	}
	return result, nil
}

func cdiAnnotated(params json.RawMessage) (any, error) {
	var in struct{ Annotations map[string]string }
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	keys, devices, err := cdi.ParseAnnotations(in.Annotations)
	result := map[string]any{"accepted": err == nil}
	if err != nil {
		result["error"] = err.Error()
		return result, nil
	}
	// Go goes through a map in no order: compare what was found, not where.
	sort.Strings(keys)
	sort.Strings(devices)
	result["keys"], result["devices"] = keys, devices
	return result, nil
}
