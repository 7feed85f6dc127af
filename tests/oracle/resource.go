package main

import (
	"encoding/json"
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	draapi1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	draapi2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// objects knows every kind that draht models, under its Go type.
var objects = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	core := schema.GroupVersion{Version: "v1"}
	scheme.AddKnownTypes(core,
		&corev1.Pod{}, &corev1.PodList{}, &corev1.Node{}, &corev1.NodeList{},
		&corev1.Namespace{}, &corev1.NamespaceList{}, &corev1.Event{}, &corev1.EventList{})
	for _, add := range []func(*runtime.Scheme) error{
		resourcev1.AddToScheme, resourcev1beta2.AddToScheme, resourcev1alpha3.AddToScheme, resourcev1beta1.AddToScheme,
		draapi1.AddToScheme, draapi2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}()

// modelled is what draht claims to read; the scheme also knows options types and the like.
var modelled = map[string][]string{
	"v1":                       {"Pod", "Node", "Namespace", "Event"},
	"resource.k8s.io/v1":       {"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"},
	"resource.k8s.io/v1beta1":  {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"},
	"resource.k8s.io/v1beta2":  {"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"},
	"resource.k8s.io/v1alpha3": {"DeviceTaintRule"},
}

type objectQuestion struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	JSON       []byte `json:"json"`
	To         string `json:"to"`
	Seed       int64  `json:"seed"`
	Density    int    `json:"density"`
}

type objectAnswer struct {
	// Error is why the text can't be decoded at all, Strict what strict decoding has against it.
	Error  string          `json:"error"`
	Strict []string        `json:"strict"`
	Object json.RawMessage `json:"object"`
}

// decode reads a text as the API server does with fieldValidation=Strict, and says it again.
func decode(q objectQuestion) (runtime.Object, objectAnswer) {
	serializer := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, objects, objects, kubejson.SerializerOptions{Strict: true})
	object, _, err := serializer.Decode(q.JSON, nil, nil)
	answer := objectAnswer{Strict: []string{}}
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, cause := range strict.Errors() {
			answer.Strict = append(answer.Strict, cause.Error())
		}
	} else if err != nil {
		answer.Error = err.Error()
		return nil, answer
	}
	return object, answer
}

func init() {
	question := func(answer func(objectQuestion) (any, error)) verb {
		return func(params json.RawMessage) (any, error) {
			var q objectQuestion
			if err := json.Unmarshal(params, &q); err != nil {
				return nil, err
			}
			return answer(q)
		}
	}
	register("resource.kinds", question(func(objectQuestion) (any, error) {
		kinds := [][2]string{}
		for version, names := range modelled {
			for _, name := range names {
				kinds = append(kinds, [2]string{version, name}, [2]string{version, name + "List"})
			}
		}
		sort.Slice(kinds, func(i, j int) bool { return kinds[i][0]+kinds[i][1] < kinds[j][0]+kinds[j][1] })
		return kinds, nil
	}))
	register("resource.fill", question(func(q objectQuestion) (any, error) {
		object, err := objects.New(schema.FromAPIVersionAndKind(q.APIVersion, q.Kind))
		if err != nil {
			return nil, err
		}
		newFiller(q.Seed, q.Density).fill(object)
		object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(q.APIVersion, q.Kind))
		return object, nil
	}))
	register("resource.decode", question(func(q objectQuestion) (any, error) {
		object, answer := decode(q)
		if object != nil {
			var err error
			if answer.Object, err = json.Marshal(object); err != nil {
				return nil, err
			}
		}
		return answer, nil
	}))
	register("resource.convert", question(func(q objectQuestion) (any, error) {
		object, answer := decode(q)
		if object == nil {
			return nil, fmt.Errorf("not decodable: %s", answer.Error)
		}
		version, err := schema.ParseGroupVersion(q.To)
		if err != nil {
			return nil, err
		}
		target := version.WithKind(object.GetObjectKind().GroupVersionKind().Kind)
		converted, err := objects.New(target)
		if err != nil {
			return nil, err
		}
		if err := objects.Convert(object, converted, nil); err != nil {
			return nil, err
		}
		converted.GetObjectKind().SetGroupVersionKind(target)
		return converted, nil
	}))
}
