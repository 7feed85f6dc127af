package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/blang/semver/v4"
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// celCompiler is what GetCompiler returns; its own type has no exported name.
type celCompiler interface {
	CompileCELExpression(expression string, options dracel.Options) dracel.CompilationResult
}

var (
	celCompilers     = map[dracel.Features]celCompiler{}
	celCompilersLock sync.Mutex
)

// celCompilerFor keeps a compiler per set of features; upstream keeps only the last one.
func celCompilerFor(features dracel.Features) celCompiler {
	celCompilersLock.Lock()
	defer celCompilersLock.Unlock()
	compiler, known := celCompilers[features]
	if !known {
		compiler = dracel.GetCompiler(features)
		celCompilers[features] = compiler
	}
	return compiler
}

type celParser struct {
	compiler celCompiler
	envType  environment.Type
}

var celParsers = map[celParser]*celgo.Env{}

// celParsing is the environment of a compiler, which is only to be had from a result.
func celParsing(compiler celCompiler, envType environment.Type) *celgo.Env {
	key := celParser{compiler, envType}
	if celParsers[key] == nil {
		celParsers[key] = compiler.CompileCELExpression("true", dracel.Options{EnvType: &envType}).Environment
	}
	return celParsers[key]
}

type celFeatures struct {
	ListAttributes     bool `json:"listAttributes"`
	ConsumableCapacity bool `json:"consumableCapacity"`
}

// celQuestion is one environment, the devices, and many expressions.
type celQuestion struct {
	Features    celFeatures `json:"features"`
	Environment string      `json:"environment"` // "new" or "stored"
	Derived     bool        `json:"derived"`
	Expressions []string    `json:"expressions"`
	Devices     []celDevice `json:"devices"`
	// Runs says how often an expression is evaluated whose outcome may depend on the order of a map.
	Runs int `json:"runs"`
}

type celDevice struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

func (d celDevice) input() dracel.Device {
	return dracel.Device{
		Driver:                   d.Driver,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		Attributes:               d.Attributes,
		Capacity:                 d.Capacity,
	}
}

type celVerdict struct {
	Accepted bool   `json:"accepted"`
	Error    string `json:"error,omitempty"`
	// Syntax says that the parser already refused.
	Syntax bool   `json:"syntax,omitempty"`
	Panic  bool   `json:"panic,omitempty"`
	Type   string `json:"type,omitempty"`
	// Cost is the estimate of the most that an evaluation can cost.
	Cost *uint64 `json:"cost,omitempty"`
	// Outcomes has one list for each device: what upstream answers, more than one answer where it depends on the
	// order in which Go walks a map.
	Outcomes [][]celOutcome `json:"outcomes,omitempty"`
}

type celOutcome struct {
	Value     any     `json:"value,omitempty"`
	Attribute any     `json:"attribute,omitempty"`
	Error     string  `json:"error,omitempty"`
	Cost      *uint64 `json:"cost,omitempty"`
}

func compileForCEL(q celQuestion, expression string) (dracel.CompilationResult, celVerdict) {
	envType := environment.StoredExpressions
	if q.Environment == "new" {
		envType = environment.NewExpressions
	}
	compiler := celCompilerFor(dracel.Features{
		EnableListTypeAttributes: q.Features.ListAttributes,
		EnableConsumableCapacity: q.Features.ConsumableCapacity,
	})
	result := compiler.CompileCELExpression(expression, dracel.Options{EnvType: &envType, DerivedAttribute: q.Derived})
	if result.Error != nil {
		_, issues := celParsing(compiler, envType).Parse(expression)
		return result, celVerdict{Error: result.Error.Error(), Syntax: issues != nil && issues.Err() != nil}
	}
	return result, celVerdict{Accepted: true, Type: result.OutputType.String(), Cost: &result.MaxCost}
}

// celWalks finds the macros that walk something.
var celWalks = regexp.MustCompile(`\b(all|exists|exists_one|existsOne|map|filter|transform[A-Z]\w*|sortBy)\b`)

// celOrderMatters says whether an expression walks something that may be a map with an order that Go chooses.
func celOrderMatters(result dracel.CompilationResult, expression string) bool {
	if !celWalks.MatchString(expression) {
		return false
	}
	checked, issues := result.Environment.Compile(expression)
	if issues != nil {
		return false
	}
	native := checked.NativeRep()
	matters := false
	ast.PostOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			walked := native.GetType(e.AsComprehension().IterRange().ID())
			matters = matters || walked.Kind() != types.ListKind
		}
	}))
	return matters
}

// celVariables are the variables that the evaluation of a device gets, with maps whose order doesn't change.
func celVariables(result dracel.CompilationResult, device celDevice) (map[string]any, error) {
	adapter := result.Environment.CELTypeAdapter()
	attributes := map[string]any{}
	for name, attribute := range device.Attributes {
		value, err := celAttributeValue(attribute)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		domain, id := celDomainAndID(string(name), device.Driver)
		if attributes[domain] == nil {
			attributes[domain] = map[string]any{}
		}
		attributes[domain].(map[string]any)[id] = value
	}
	capacity := map[string]any{}
	for name, amount := range device.Capacity {
		domain, id := celDomainAndID(string(name), device.Driver)
		if capacity[domain] == nil {
			capacity[domain] = map[string]apiservercel.Quantity{}
		}
		value := amount.Value
		capacity[domain].(map[string]apiservercel.Quantity)[id] = apiservercel.Quantity{Quantity: &value}
	}
	multiple := device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
	return map[string]any{"device": map[string]any{
		"driver":                   device.Driver,
		"allowMultipleAllocations": multiple,
		"attributes":               celDefaultMap{types.NewStringInterfaceMap(adapter, attributes), adapter},
		"capacity":                 celDefaultMap{types.NewStringInterfaceMap(adapter, capacity), adapter},
	}}, nil
}

// celHasTwins says whether an attribute is there twice, bare and with the driver's domain; then the order in which Go
// walks the attributes decides which one counts.
func celHasTwins(device celDevice) bool {
	for name := range device.Attributes {
		if !strings.Contains(string(name), "/") {
			if _, twin := device.Attributes[resourceapi.QualifiedName(device.Driver)+"/"+name]; twin {
				return true
			}
		}
	}
	return false
}

// celDefaultMap finds an empty map for a key that isn't there, as upstream's input for devices does.
type celDefaultMap struct {
	traits.Mapper
	adapter types.Adapter
}

func (m celDefaultMap) Find(key ref.Val) (ref.Val, bool) {
	if value, found := m.Mapper.Find(key); found {
		return value, true
	}
	return m.adapter.NativeToValue(map[string]any{}), true
}

func celDomainAndID(name, driver string) (string, string) {
	for at := range len(name) {
		if name[at] == '/' {
			return name[:at], name[at+1:]
		}
	}
	return driver, name
}

func celAttributeValue(attribute resourceapi.DeviceAttribute) (any, error) {
	version := func(text string) (apiservercel.Semver, error) {
		v, err := semver.Parse(text)
		if err != nil {
			return apiservercel.Semver{}, fmt.Errorf("parse semantic version: %w", err)
		}
		return apiservercel.Semver{Version: v}, nil
	}
	switch {
	case attribute.IntValues != nil:
		return attribute.IntValues, nil
	case attribute.BoolValues != nil:
		return attribute.BoolValues, nil
	case attribute.StringValues != nil:
		return attribute.StringValues, nil
	case attribute.VersionValues != nil:
		versions := make([]apiservercel.Semver, len(attribute.VersionValues))
		for i, text := range attribute.VersionValues {
			v, err := version(text)
			if err != nil {
				return nil, err
			}
			versions[i] = v
		}
		return versions, nil
	case attribute.IntValue != nil:
		return *attribute.IntValue, nil
	case attribute.BoolValue != nil:
		return *attribute.BoolValue, nil
	case attribute.StringValue != nil:
		return *attribute.StringValue, nil
	case attribute.VersionValue != nil:
		return version(*attribute.VersionValue)
	default:
		return nil, fmt.Errorf("unsupported attribute value")
	}
}

func evaluateForCEL(ctx context.Context, q celQuestion, result dracel.CompilationResult, device celDevice) (outcome celOutcome) {
	defer func() {
		if cause := recover(); cause != nil {
			outcome.Attribute = map[string]string{"error": fmt.Sprint("panic: ", cause)}
		}
	}()
	if !q.Derived {
		matches, details, err := result.DeviceMatches(ctx, device.input())
		outcome.Cost = details.ActualCost()
		if err != nil {
			outcome.Error = err.Error()
		} else {
			outcome.Value = celTyped(types.Bool(matches))
		}
		return outcome
	}
	// The value in full, then what upstream makes an attribute of.
	variables, err := celVariables(result, device)
	if err != nil {
		return celOutcome{Error: err.Error()}
	}
	value, details, err := result.Program.ContextEval(ctx, variables)
	outcome.Cost = details.ActualCost()
	if err != nil {
		outcome.Error = err.Error()
		return outcome
	}
	outcome.Value = celTyped(value)
	attribute, _, err := result.EvaluateDerivedAttribute(ctx, device.input())
	if err != nil {
		outcome.Attribute = map[string]string{"error": err.Error()}
	} else {
		outcome.Attribute = attribute
	}
	return outcome
}

// celText keeps what is no UTF-8.
func celText(text string) any {
	if utf8.ValidString(text) {
		return text
	}
	return map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(text))}
}

// celTyped is a value with its type, exact and comparable: ["int", "1"], ["list", [...]].
func celTyped(value ref.Val) []any {
	switch v := value.(type) {
	case types.Null:
		return []any{"null", nil}
	case types.Bool:
		return []any{"bool", bool(v)}
	case types.Int:
		return []any{"int", strconv.FormatInt(int64(v), 10)}
	case types.Uint:
		return []any{"uint", strconv.FormatUint(uint64(v), 10)}
	case types.Double:
		if math.IsNaN(float64(v)) {
			return []any{"double", "NaN"}
		}
		return []any{"double", strconv.FormatUint(math.Float64bits(float64(v)), 16)}
	case types.String:
		return []any{"string", celText(string(v))}
	case types.Bytes:
		return []any{"bytes", base64.StdEncoding.EncodeToString([]byte(v))}
	case types.Timestamp:
		return []any{"timestamp", fmt.Sprintf("%d.%09d", v.Unix(), v.Nanosecond())}
	case types.Duration:
		return []any{"duration", strconv.FormatInt(v.Nanoseconds(), 10)}
	case *types.Type:
		return []any{"type", v.TypeName()}
	case *types.Optional:
		if !v.HasValue() {
			return []any{"optional", nil}
		}
		return []any{"optional", celTyped(v.GetValue())}
	case *apiservercel.Quantity:
		return celTyped(*v)
	case apiservercel.Quantity:
		return []any{"quantity", v.Quantity.String()}
	case apiservercel.Semver:
		return []any{"semver", v.Version.String()}
	case apiservercel.IP:
		return []any{"ip", v.Addr.String()}
	case apiservercel.CIDR:
		return []any{"cidr", v.Prefix.String()}
	case apiservercel.URL:
		return []any{"url", celText(v.URL.String())}
	case apiservercel.Format:
		return []any{"format", v.Name}
	case traits.Lister:
		elements := [][]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, celTyped(it.Next()))
		}
		return []any{"list", elements}
	case traits.Mapper:
		entries := [][2]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			item, _ := v.Find(key)
			entries = append(entries, [2]any{celTyped(key), celTyped(item)})
		}
		slices.SortFunc(entries, func(a, b [2]any) int {
			left, _ := json.Marshal(a)
			right, _ := json.Marshal(b)
			return slices.Compare(left, right)
		})
		return []any{"map", entries}
	default:
		return []any{"other", fmt.Sprintf("%s %v", value.Type().TypeName(), value.Value())}
	}
}

// compileOrPanicForCEL makes a verdict of a panic: some expressions make upstream's compiler panic.
func compileOrPanicForCEL(q celQuestion, expression string) (result dracel.CompilationResult, verdict celVerdict) {
	defer func() {
		if cause := recover(); cause != nil {
			verdict = celVerdict{Error: fmt.Sprint("panic: ", cause), Panic: true}
		}
	}()
	return compileForCEL(q, expression)
}

// answerForCEL judges every expression and, where there are devices, evaluates it on each.
func answerForCEL(params json.RawMessage) (any, error) {
	var q celQuestion
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	// Upstream's callers have a deadline too; here it only keeps a hopeless question from taking minutes.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	verdicts := make([]celVerdict, len(q.Expressions))
	for i, expression := range q.Expressions {
		result, verdict := compileOrPanicForCEL(q, expression)
		if verdict.Accepted && len(q.Devices) > 0 {
			runs := 1
			if q.Runs > 1 && celOrderMatters(result, expression) {
				runs = q.Runs
			}
			for _, device := range q.Devices {
				if celHasTwins(device) {
					runs = max(runs, q.Runs)
				}
				verdict.Outcomes = append(verdict.Outcomes, celOutcomes(ctx, q, result, device, runs))
			}
		}
		verdicts[i] = verdict
	}
	return verdicts, nil
}

// celOutcomes are the different outcomes of some runs.
func celOutcomes(ctx context.Context, q celQuestion, result dracel.CompilationResult, device celDevice, runs int) []celOutcome {
	seen := map[string]bool{}
	outcomes := []celOutcome{}
	for range runs {
		outcome := evaluateForCEL(ctx, q, result, device)
		text, _ := json.Marshal(outcome)
		if !seen[string(text)] {
			seen[string(text)] = true
			outcomes = append(outcomes, outcome)
		}
	}
	return outcomes
}

func init() {
	// cel.compile is cel.evaluate without devices.
	register("cel.compile", answerForCEL)
	register("cel.evaluate", answerForCEL)
}
