//go:build deps

// Keeps `go mod tidy` from dropping modules whose verbs are not written yet; never built.

package main

import (
	_ "github.com/blang/semver/v4"
	_ "github.com/google/cel-go/cel"
	_ "github.com/opencontainers/runtime-spec/specs-go"
	_ "k8s.io/apimachinery/pkg/api/resource"
	_ "k8s.io/apiserver/pkg/cel/environment"
	_ "k8s.io/dynamic-resource-allocation/cel"
	_ "k8s.io/dynamic-resource-allocation/structured"
	_ "tags.cncf.io/container-device-interface/pkg/cdi"
	_ "tags.cncf.io/container-device-interface/specs-go"
)
