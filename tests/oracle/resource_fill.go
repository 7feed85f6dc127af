package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler sets the fields of a Go object to values that differ from zero, so that an object with every field of its
// type exists without anybody listing the fields. Density is the share of optional parts that are set, in percent.
type filler struct {
	random  *rand.Rand
	density int
}

func newFiller(seed int64, density int) *filler {
	return &filler{random: rand.New(rand.NewSource(seed)), density: density}
}

func (f *filler) fill(object runtime.Object) {
	f.value(reflect.ValueOf(object).Elem())
}

func (f *filler) skip() bool { return f.random.Intn(100) >= f.density }

func (f *filler) name() string { return fmt.Sprintf("s%d", f.random.Intn(1000)) }

func (f *filler) value(v reflect.Value) {
	switch special := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
		return
	case *resource.Quantity:
		texts := []string{"1", "250m", "80Gi", "1e3", "1500M", "3n", "0.5", "-2Ki"}
		*special = resource.MustParse(texts[f.random.Intn(len(texts))])
		return
	case *metav1.Time:
		*special = metav1.NewTime(time.Unix(1_700_000_000+f.random.Int63n(1e8), 0).UTC())
		return
	case *metav1.MicroTime:
		*special = metav1.NewMicroTime(time.Unix(1_700_000_000+f.random.Int63n(1e8), 123_456_000).UTC())
		return
	case *metav1.FieldsV1:
		special.Raw = []byte(`{"f:metadata":{"f:labels":{".":{}}}}`)
		return
	case *runtime.RawExtension:
		special.Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Config","nothing":null,"list":[1,2.5,true,""],"unknown":{}}`)
		return
	case *intstr.IntOrString:
		*special = intstr.FromInt32(8080)
		if f.random.Intn(2) == 0 {
			*special = intstr.FromString("http")
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if f.skip() {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		// A pointer to zero differs from no pointer, except where everything has to be set.
		if f.density < 100 && v.Elem().Kind() != reflect.Struct && f.random.Intn(4) == 0 {
			return
		}
		f.value(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			f.value(v.Field(i))
		}
	case reflect.Slice:
		if f.skip() {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1+f.random.Intn(2), 3))
		for i := range v.Len() {
			f.value(v.Index(i))
		}
	case reflect.Map:
		if f.skip() {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + f.random.Intn(2) {
			key := reflect.New(v.Type().Key()).Elem()
			key.SetString("example.com/" + f.name())
			value := reflect.New(v.Type().Elem()).Elem()
			f.value(value)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(f.name())
	case reflect.Bool:
		v.SetBool(f.density == 100 || f.random.Intn(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1 + f.random.Int63n(1000))
	default:
		panic(fmt.Sprintf("no filling for %s", v.Type()))
	}
}
