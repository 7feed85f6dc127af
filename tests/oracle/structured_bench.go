package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

func init() {
	register("structured.load", structuredLoad)
	register("structured.hold", structuredHold)
	register("structured.bench_one", structuredBenchOne)
	register("structured.bench_nodes", structuredBenchNodes)
	register("structured.bench_fill", structuredBenchFill)
}

// loaded is the cluster that the benchmarks ask about. It stays between requests, because a scheduler keeps its caches.
var loaded struct {
	structuredCluster
	state structured.AllocatedState
}

// structuredLoad reads a cluster from a file.
func structuredLoad(params json.RawMessage) (any, error) {
	var in struct{ File string }
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(in.File)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	var cluster structuredCluster
	if err := json.Unmarshal(text, &cluster); err != nil {
		return nil, err
	}
	decoded := time.Since(start)
	loaded.structuredCluster = cluster
	loaded.state = allocatedState(cluster.Features, cluster.AllocatedClaims)
	runtime.GC()
	return map[string]any{"slices": len(cluster.Slices), "decodeNanoseconds": decoded.Nanoseconds(), "go": runtime.Version()}, nil
}

// structuredHold replaces what the loaded cluster's claims hold.
func structuredHold(params json.RawMessage) (any, error) {
	var in struct{ AllocatedClaims []*resourcev1.ResourceClaim }
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	loaded.state = allocatedState(loaded.Features, in.AllocatedClaims)
	runtime.GC()
	return map[string]any{"devices": len(loaded.state.AllocatedDevices)}, nil
}

// celCache is the shared one, or where the first use is to be measured, an empty one.
func celCache(cold bool) *cel.Cache {
	if cold {
		return cel.NewCache(100, cel.Features{EnableConsumableCapacity: loaded.Features.ConsumableCapacity, EnableListTypeAttributes: loaded.Features.ListTypeAttributes})
	}
	return celCacheFor(loaded.Features)
}

// structuredBenchOne allocates the same claims on the same node as often as asked, with one allocator.
func structuredBenchOne(params json.RawMessage) (any, error) {
	var in struct {
		Node   string
		Claims []*resourcev1.ResourceClaim
		Rounds int
		Cold   bool
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	node := nodeNamed(loaded.Nodes, in.Node)
	if node == nil {
		return nil, fmt.Errorf("node %q is not loaded", in.Node)
	}
	ctx := context.Background()
	cache := celCache(in.Cold)
	start := time.Now()
	allocator, err := structured.NewAllocator(ctx, loaded.Features, loaded.state, classes(loaded.Classes), loaded.Slices, cache)
	if err != nil {
		return nil, err
	}
	construction := time.Since(start).Nanoseconds()
	nanoseconds := make([]int64, in.Rounds)
	var results []resourcev1.AllocationResult
	for round := range in.Rounds {
		start := time.Now()
		results, err = allocator.Allocate(ctx, node, in.Claims)
		nanoseconds[round] = time.Since(start).Nanoseconds()
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"nanoseconds": nanoseconds, "constructionNanoseconds": construction, "results": results}, nil
}

// structuredBenchNodes asks every node in order, and says which fit and what the first one would give.
func structuredBenchNodes(params json.RawMessage) (any, error) {
	var in struct {
		Claims []*resourcev1.ResourceClaim
		Rounds int
		Cold   bool
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	var nanoseconds []int64
	var fits []int
	var first []resourcev1.AllocationResult
	errors := 0
	for range in.Rounds {
		ctx := context.Background()
		cache := celCache(in.Cold)
		fits, first, errors = make([]int, 0, len(loaded.Nodes)), nil, 0
		start := time.Now()
		allocator, err := structured.NewAllocator(ctx, loaded.Features, loaded.state, classes(loaded.Classes), loaded.Slices, cache)
		if err != nil {
			return nil, err
		}
		for i, node := range loaded.Nodes {
			results, err := allocator.Allocate(ctx, node, in.Claims)
			if err != nil {
				errors++
			}
			if results == nil {
				continue
			}
			if first == nil {
				first = results
			}
			fits = append(fits, i)
		}
		nanoseconds = append(nanoseconds, time.Since(start).Nanoseconds())
	}
	return map[string]any{"nanoseconds": nanoseconds, "fits": fits, "first": first, "errors": errors}, nil
}

// filling is a cluster that fills, one claim after the other.
type filling struct {
	state  structured.AllocatedState
	claims []*resourcev1.ResourceClaim
	reused structured.Allocator
	// next is the node that the last claim was placed on.
	next int
}

// cloned is what the scheduler's cache gives to each pod: a copy of what is held.
func (f *filling) cloned() structured.AllocatedState {
	return structured.AllocatedState{
		AllocatedDevices:         f.state.AllocatedDevices.Clone(),
		AllocatedSharedDeviceIDs: f.state.AllocatedSharedDeviceIDs.Clone(),
		AggregatedCapacity:       f.state.AggregatedCapacity.Clone(),
	}
}

// place puts the next claim on the first node from a given one that fits, and makes that visible to the claims after it.
func (f *filling) place(allocator structured.Allocator, from int) (bool, error) {
	ctx := context.Background()
	for step := range loaded.Nodes {
		index := (from + step) % len(loaded.Nodes)
		results, err := allocator.Allocate(ctx, loaded.Nodes[index], f.claims)
		if err != nil {
			return false, err
		}
		if results == nil {
			continue
		}
		for i := range results {
			addAllocation(&f.state, loaded.Features, &results[i])
		}
		f.next = index
		return true, nil
	}
	return false, nil
}

// fresh makes the allocator of one pod, as the scheduler does.
func (f *filling) fresh() (structured.Allocator, error) {
	return structured.NewAllocator(context.Background(), loaded.Features, f.cloned(), classes(loaded.Classes), loaded.Slices, celCacheFor(loaded.Features))
}

// structuredBenchFill fills the loaded cluster with equal claims until none fits, and samples at some levels what a
// claim costs in three ways of asking:
//
//   - order: a copy of the state and an allocator for each claim, nodes from the first one on;
//   - afterLast: the same, nodes from the last one used on;
//   - reused: one allocator for all claims, whose state is changed behind its back, nodes from the last one used on. This
//     is less than its interface promises to support; it is the bound of what Go could do.
//
// The whole filling runs in the third way, the samples of the other two are part of it.
func structuredBenchFill(params json.RawMessage) (any, error) {
	var in struct {
		Claims  []*resourcev1.ResourceClaim
		Levels  []int
		Samples int
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	f := &filling{state: allocatedState(loaded.Features, nil), claims: in.Claims}
	var err error
	f.reused, err = structured.NewAllocator(context.Background(), loaded.Features, f.state, classes(loaded.Classes), loaded.Slices, celCacheFor(loaded.Features))
	if err != nil {
		return nil, err
	}
	type sample struct {
		Placed    int     `json:"placed"`
		Order     []int64 `json:"order"`
		AfterLast []int64 `json:"afterLast"`
	}
	var samples []sample
	var reused int64
	placed, inReused := 0, 0
	for level := 0; ; {
		if level < len(in.Levels) && placed >= in.Levels[level] {
			level++
			s := sample{Placed: placed}
			for range in.Samples {
				for _, way := range []struct {
					from        int
					nanoseconds *[]int64
				}{{0, &s.Order}, {f.next, &s.AfterLast}} {
					start := time.Now()
					allocator, err := f.fresh()
					if err != nil {
						return nil, err
					}
					fit, err := f.place(allocator, way.from)
					if err != nil {
						return nil, err
					}
					*way.nanoseconds = append(*way.nanoseconds, time.Since(start).Nanoseconds())
					if fit {
						placed++
					}
				}
			}
			samples = append(samples, s)
			continue
		}
		start := time.Now()
		fit, err := f.place(f.reused, f.next)
		if err != nil {
			return nil, err
		}
		if !fit {
			break
		}
		reused += time.Since(start).Nanoseconds()
		inReused++
		placed++
	}
	return map[string]any{"placed": placed, "samples": samples, "reusedNanoseconds": reused, "reusedPlaced": inReused, "held": len(f.state.AllocatedDevices)}, nil
}
