package main

import (
	"encoding/json"
	"runtime"
	"time"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func init() {
	register("cdi.bench_load", cdiBenchLoad)
	register("cdi.bench_inject", cdiBenchInject)
}

// cdiBenchLoad makes a cache as often as asked, without watching, and says how long each took.
func cdiBenchLoad(params json.RawMessage) (any, error) {
	var in struct {
		Directories []string
		Rounds      int
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	var nanoseconds []int64
	devices := 0
	for range in.Rounds {
		start := time.Now()
		cache, err := cdi.NewCache(cdi.WithSpecDirs(in.Directories...), cdi.WithAutoRefresh(false))
		if err != nil {
			return nil, err
		}
		devices = len(cache.ListDevices())
		nanoseconds = append(nanoseconds, time.Since(start).Nanoseconds())
	}
	return map[string]any{"nanoseconds": nanoseconds, "devices": devices, "go": runtime.Version()}, nil
}

// cdiBenchInject injects the same request as often as asked, each time into a fresh copy of the runtime spec.
func cdiBenchInject(params json.RawMessage) (any, error) {
	var in struct {
		Directories []string
		Rounds      int
		OCI         json.RawMessage
		Names       []string
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(in.Directories...))
	if err != nil {
		return nil, err
	}
	var nanoseconds []int64
	for range in.Rounds {
		spec, err := decodeOCI(in.OCI)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		if _, err := cache.InjectDevices(spec, in.Names...); err != nil {
			return nil, err
		}
		nanoseconds = append(nanoseconds, time.Since(start).Nanoseconds())
	}
	return map[string]any{"nanoseconds": nanoseconds}, nil
}
