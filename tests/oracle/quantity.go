package main

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// amount is everything a caller can see of a quantity. Numbers travel as text: most exceed what JSON readers keep.
type amount struct {
	Unscaled  string  `json:"unscaled"`
	Exponent  int64   `json:"exponent"`
	Big       bool    `json:"big"`
	Format    string  `json:"format"`
	Text      string  `json:"text"`
	Canonical string  `json:"canonical"`
	Sign      int     `json:"sign"`
	Int64     *string `json:"int64"`
	Value     string  `json:"value"`
	Milli     string  `json:"milli"`
	Nano      string  `json:"nano"`
	Float     string  `json:"float"`
}

type verdict struct {
	Accepted bool    `json:"accepted"`
	Amount   *amount `json:"amount,omitempty"`
}

// describe asks a copy for each property, because some methods change how the quantity is held.
func describe(q resource.Quantity) *amount {
	held := reflect.ValueOf(q)
	a := &amount{Big: !held.FieldByName("d").FieldByName("Dec").IsNil(), Format: string(q.Format), Sign: q.Sign()}
	if a.Big {
		a.Unscaled, a.Exponent = q.AsDec().UnscaledBig().String(), -int64(q.AsDec().Scale())
	} else {
		i := held.FieldByName("i")
		a.Unscaled, a.Exponent = strconv.FormatInt(i.FieldByName("value").Int(), 10), i.FieldByName("scale").Int()
	}
	text, canonical := q.DeepCopy(), q.DeepCopy()
	a.Text = text.String()
	number, suffix := canonical.CanonicalizeBytes(nil)
	a.Canonical = string(number) + string(suffix)
	if i, ok := q.AsInt64(); ok {
		s := strconv.FormatInt(i, 10)
		a.Int64 = &s
	}
	a.Value = strconv.FormatInt(q.Value(), 10)
	a.Milli = strconv.FormatInt(q.MilliValue(), 10)
	a.Nano = strconv.FormatInt(q.ScaledValue(resource.Nano), 10)
	a.Float = fmt.Sprintf("%016x", math.Float64bits(q.AsApproximateFloat64()))
	return a
}

func judged(q resource.Quantity, err error) (any, error) {
	if err != nil {
		return verdict{}, nil
	}
	return verdict{Accepted: true, Amount: describe(q)}, nil
}

func init() {
	register("quantity.parse", func(params json.RawMessage) (any, error) {
		var p struct{ Text string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		return judged(resource.ParseQuantity(p.Text))
	})

	// A value in a JSON document, passed as the document's text.
	register("quantity.unmarshal", func(params json.RawMessage) (any, error) {
		var p struct{ Document string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		var q resource.Quantity
		err := json.Unmarshal([]byte(p.Document), &q)
		return judged(q, err)
	})

	register("quantity.pair", func(params json.RawMessage) (any, error) {
		var p struct {
			A, B   string
			Factor int64
		}
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		a, err := resource.ParseQuantity(p.A)
		if err != nil {
			return nil, err
		}
		b, err := resource.ParseQuantity(p.B)
		if err != nil {
			return nil, err
		}
		sum, difference, product, negated := a.DeepCopy(), a.DeepCopy(), a.DeepCopy(), a.DeepCopy()
		sum.Add(b.DeepCopy())
		difference.Sub(b.DeepCopy())
		product.Mul(p.Factor)
		negated.Neg()
		twice := sum.DeepCopy()
		twice.Sub(a.DeepCopy())
		left, right := a.DeepCopy(), b.DeepCopy()
		return map[string]any{
			"compare": left.Cmp(right), "sum": describe(sum), "difference": describe(difference),
			"product": describe(product), "negated": describe(negated), "back": describe(twice),
		}, nil
	})

	// A value that no text gives: NewScaledQuantity in a format, compared, added to itself and negated.
	register("quantity.make", func(params json.RawMessage) (any, error) {
		var p struct {
			Value, Other int64
			Scale        int32
			Format       resource.Format
		}
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		q := resource.NewScaledQuantity(p.Value, resource.Scale(p.Scale))
		q.Format = p.Format
		other := resource.NewQuantity(p.Other, resource.DecimalSI)
		sum, difference, product, negated := q.DeepCopy(), q.DeepCopy(), q.DeepCopy(), q.DeepCopy()
		sum.Add(*other)
		difference.Sub(*other)
		product.Mul(p.Other)
		negated.Neg()
		return map[string]any{
			"self": describe(q.DeepCopy()), "compare": q.Cmp(*other), "sum": describe(sum),
			"difference": describe(difference), "product": describe(product), "negated": describe(negated),
		}, nil
	})

	// Nanoseconds to read the texts, to compare each with the next, and to write each canonically.
	register("quantity.bench", func(params json.RawMessage) (any, error) {
		var p struct{ Texts []string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		read := make([]resource.Quantity, len(p.Texts))
		start := time.Now()
		for i, text := range p.Texts {
			q, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, err
			}
			read[i] = q
		}
		parsed := time.Since(start)
		start = time.Now()
		less := 0
		for i := 1; i < len(read); i++ {
			if read[i-1].Cmp(read[i]) < 0 {
				less++
			}
		}
		compared := time.Since(start)
		start = time.Now()
		length := 0
		for i := range read {
			number, suffix := read[i].CanonicalizeBytes(nil)
			length += len(number) + len(suffix)
		}
		return map[string]any{
			"parse_ns": parsed.Nanoseconds(), "compare_ns": compared.Nanoseconds(),
			"write_ns": time.Since(start).Nanoseconds(), "less": less, "length": length,
		}, nil
	})
}
