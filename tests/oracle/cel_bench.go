package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"runtime"
	"time"

	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// celBenched are the devices that cel.bench_match goes through.
var celBenched []dracel.Device

func init() {
	register("cel.bench_load", celBenchLoad)
	register("cel.bench_compile", celBenchCompile)
	register("cel.bench_match", celBenchMatch)
}

// celBenchLoad keeps devices, of all calls since the last one that started anew.
func celBenchLoad(params json.RawMessage) (any, error) {
	var in struct {
		Anew    bool
		Devices []celDevice
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	if in.Anew {
		celBenched = nil
	}
	for _, device := range in.Devices {
		celBenched = append(celBenched, device.input())
	}
	return map[string]any{"devices": len(celBenched), "go": runtime.Version()}, nil
}

func celBenchCompiled(expression string, estimate bool) (dracel.CompilationResult, error) {
	envType := environment.StoredExpressions
	compiler := celCompilerFor(dracel.Features{EnableListTypeAttributes: true, EnableConsumableCapacity: true})
	result := compiler.CompileCELExpression(expression, dracel.Options{EnvType: &envType, DisableCostEstimation: !estimate})
	if result.Error != nil {
		return result, errors.New(result.Error.Error())
	}
	return result, nil
}

// celBenchCompile says how long compiling with an estimate of the cost takes.
func celBenchCompile(params json.RawMessage) (any, error) {
	var in struct {
		Expression string
		Rounds     int
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	var nanoseconds []int64
	for range in.Rounds {
		start := time.Now()
		if _, err := celBenchCompiled(in.Expression, true); err != nil {
			return nil, err
		}
		nanoseconds = append(nanoseconds, time.Since(start).Nanoseconds())
	}
	return map[string]any{"nanoseconds": nanoseconds}, nil
}

// celBenchMatch asks a selector about every device, compiled as the scheduler does it, one after the other.
func celBenchMatch(params json.RawMessage) (any, error) {
	var in struct {
		Expression string
		Rounds     int
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	result, err := celBenchCompiled(in.Expression, false)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	matches := make([]byte, (len(celBenched)+7)/8)
	failed := 0
	var nanoseconds []int64
	for range in.Rounds {
		clear(matches)
		failed = 0
		start := time.Now()
		for i, device := range celBenched {
			match, _, err := result.DeviceMatches(ctx, device)
			if err != nil {
				failed++
			} else if match {
				matches[i/8] |= 1 << (i % 8)
			}
		}
		nanoseconds = append(nanoseconds, time.Since(start).Nanoseconds())
	}
	return map[string]any{"nanoseconds": nanoseconds, "matches": hex.EncodeToString(matches), "failed": failed}, nil
}
