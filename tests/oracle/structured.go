package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

func init() {
	// The stable variant takes pools in the random order of a Go map, so it has no one first solution to compare with.
	structured.EnableAllocators("incubating", "experimental")
	register("structured.allocate", structuredAllocate)
}

// structuredCluster is what the allocator sees of a cluster.
type structuredCluster struct {
	Features structured.Features
	Slices   []*resourcev1.ResourceSlice
	Classes  []*resourcev1.DeviceClass
	// AllocatedClaims hold devices already; only their status.allocation is read.
	AllocatedClaims []*resourcev1.ResourceClaim
	Nodes           []*corev1.Node
}

// structuredCase is one question: the claims of one pod, on each of some nodes.
type structuredCase struct {
	structuredCluster
	Claims []*resourcev1.ResourceClaim
	// On names the nodes that are asked about; all of them if it is empty.
	On        []string
	TimeoutMs int64
}

// structuredAnswer is what happened on one node. Results is null where nothing fits, and then Error says why not.
type structuredAnswer struct {
	Node    string                        `json:"node"`
	Results []resourcev1.AllocationResult `json:"results"`
	Error   string                        `json:"error"`
	// Class is a short name of the kind of error; empty without one.
	Class string `json:"class"`
	// OnNode marks an error that only rules out this node.
	OnNode      bool  `json:"onNode"`
	TimedOut    bool  `json:"timedOut"`
	Invocations int64 `json:"invocations"`
	Nanoseconds int64 `json:"nanoseconds"`
}

// structuredAllocate answers many cases, each with a deadline and with allocators of its own.
func structuredAllocate(params json.RawMessage) (any, error) {
	var in struct{ Cases []structuredCase }
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	answers := make([][]structuredAnswer, len(in.Cases))
	for i, c := range in.Cases {
		on := c.On
		if len(on) == 0 {
			for _, node := range c.Nodes {
				on = append(on, node.Name)
			}
		}
		for _, name := range on {
			node := nodeNamed(c.Nodes, name)
			if node == nil {
				return nil, fmt.Errorf("case %d asks about node %q, which it doesn't describe", i, name)
			}
			// A fresh state: the allocator keeps references into it.
			state := allocatedState(c.Features, c.AllocatedClaims)
			answers[i] = append(answers[i], allocateOn(c.structuredCluster, state, node, c.Claims, time.Duration(c.TimeoutMs)*time.Millisecond))
		}
	}
	return answers, nil
}

func nodeNamed(nodes []*corev1.Node, name string) *corev1.Node {
	for _, node := range nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// allocateOn runs one allocation; a panic of the library on hostile input becomes an answer, too.
func allocateOn(cluster structuredCluster, state structured.AllocatedState, node *corev1.Node, claims []*resourcev1.ResourceClaim, timeout time.Duration) (answer structuredAnswer) {
	answer.Node = node.Name
	ctx := context.Background()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	defer func() {
		if cause := recover(); cause != nil {
			answer.Error, answer.Class = fmt.Sprint(cause), "panic"
		}
	}()
	start := time.Now()
	allocator, err := structured.NewAllocator(ctx, cluster.Features, state, classes(cluster.Classes), cluster.Slices, celCacheFor(cluster.Features))
	if err != nil {
		answer.Error, answer.Class = err.Error(), "internal"
		return answer
	}
	answer.Results, err = allocator.Allocate(ctx, node, claims)
	answer.Nanoseconds = time.Since(start).Nanoseconds()
	answer.Invocations = invocations(allocator)
	if err != nil {
		answer.Error = err.Error()
		answer.OnNode = errors.Is(err, structured.ErrFailedAllocationOnNode)
		answer.TimedOut = ctx.Err() != nil
		answer.Class = errorClass(answer.Error)
		if answer.TimedOut {
			answer.Class = "timeout"
		}
	}
	return answer
}

// classes finds device classes as the scheduler's lister does.
type classes []*resourcev1.DeviceClass

func (c classes) List() ([]*resourcev1.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: resourcev1.GroupName, Resource: "deviceclasses"}, name)
}

// allocatedState is what the scheduler derives from the claims in its cache: an admin's view holds nothing, a share
// holds its amounts, and everything else, shares included where the feature is off, holds the device.
func allocatedState(features structured.Features, claims []*resourcev1.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		addAllocation(&state, features, claim.Status.Allocation)
	}
	return state
}

func addAllocation(state *structured.AllocatedState, features structured.Features, allocation *resourcev1.AllocationResult) {
	if allocation == nil {
		return
	}
	for _, result := range allocation.Devices.Results {
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		switch {
		case result.AdminAccess != nil && *result.AdminAccess:
		case features.ConsumableCapacity && result.ShareID != nil:
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		default:
			state.AllocatedDevices.Insert(id)
		}
	}
}

var (
	celCachesMutex sync.Mutex
	celCaches      = map[cel.Features]*cel.Cache{}
)

// celCacheFor keeps compiled selectors between questions, as a scheduler does.
func celCacheFor(features structured.Features) *cel.Cache {
	key := cel.Features{EnableConsumableCapacity: features.ConsumableCapacity, EnableListTypeAttributes: features.ListTypeAttributes}
	celCachesMutex.Lock()
	defer celCachesMutex.Unlock()
	if _, known := celCaches[key]; !known {
		celCaches[key] = cel.NewCache(10_000, key)
	}
	return celCaches[key]
}

// invocations reads how often the search called itself. The type of the statistics is internal, so only reflection
// reaches them; -1 if they are gone.
func invocations(allocator structured.Allocator) int64 {
	method := reflect.ValueOf(allocator).MethodByName("GetStats")
	if !method.IsValid() {
		return -1
	}
	if field := method.Call(nil)[0].FieldByName("NumAllocateOneInvocations"); field.IsValid() {
		return field.Int()
	}
	return -1
}

// errorClasses name the kinds of errors by what their texts say, as draht names them; the first one that fits counts.
var errorClasses = []struct{ says, class string }{
	{"feature is disabled", "feature-disabled"},
	{"CEL expression empty", "selector-unsupported"},
	{"missing device class name", "class-name-missing"},
	{"could not retrieve device class", "class-not-found"},
	{"unsupported count mode", "allocation-mode-unknown"},
	{"is currently being updated", "pool-incomplete"},
	{"is currently invalid", "pool-invalid"},
	{"exceeds the claim limit", "too-many-devices"},
	{"allocation max size exceeded", "result-limit"},
	{"empty constraint", "constraint-empty"},
	{"CEL compile error", "selector-compile"},
	{"CEL runtime error", "selector-runtime"},
	{"compile derived attribute", "derived-compile"},
	{"evaluate derived attribute", "derived-runtime"},
	{"because a claim constraint would not be satisfied", "constraint-all"},
	{"cannot be represented in the device's range arithmetic", "capacity-unrepresentable"},
	{"capacity value is negative", "capacity-negative"},
	{"node selector", "node-selector"},
	{"ResourceSlice.NodeSelector", "node-selector"},
	{"invalid resource pools were encountered", "pools-invalid-on-node"},
}

func errorClass(text string) string {
	for _, c := range errorClasses {
		if strings.Contains(text, c.says) {
			return c.class
		}
	}
	return "unknown"
}
