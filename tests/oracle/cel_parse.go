package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

type parseParams struct {
	Expression string `json:"expression"`
}

type parseIssue struct {
	Message string `json:"message"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

type parseAnswer struct {
	Accepted bool         `json:"accepted"`
	Tree     string       `json:"tree"`
	Issues   []parseIssue `json:"issues"`
}

// treeWriter writes a tree as one line: each node is (offset kind parts...).
type treeWriter struct {
	strings.Builder
	offsets map[int64]ast.OffsetRange
}

func (w *treeWriter) open(id int64, kind string) {
	fmt.Fprintf(w, "(%d %s", w.offsets[id].Start, kind)
}

func (w *treeWriter) text(value string) {
	w.WriteByte(' ')
	w.WriteString(strconv.QuoteToASCII(value))
}

func (w *treeWriter) optional(is bool) {
	if is {
		w.WriteString(" ?")
	}
}

func (w *treeWriter) literal(value ref.Val) {
	switch v := value.(type) {
	case types.Double:
		fmt.Fprintf(w, " double %016x", math.Float64bits(float64(v)))
	case types.Bytes:
		fmt.Fprintf(w, " bytes %x", []byte(v))
	case types.String:
		w.WriteString(" string")
		for _, each := range string(v) {
			fmt.Fprintf(w, " %x", each)
		}
	default:
		fmt.Fprintf(w, " %s %v", value.Type().TypeName(), value.Value())
	}
}

func (w *treeWriter) node(e ast.Expr) {
	w.WriteByte(' ')
	switch e.Kind() {
	case ast.LiteralKind:
		w.open(e.ID(), "literal")
		w.literal(e.AsLiteral())
	case ast.IdentKind:
		w.open(e.ID(), "name")
		w.text(e.AsIdent())
	case ast.SelectKind:
		s := e.AsSelect()
		kind := "select"
		if s.IsTestOnly() {
			kind = "test"
		}
		w.open(e.ID(), kind)
		w.node(s.Operand())
		w.text(s.FieldName())
	case ast.CallKind:
		c := e.AsCall()
		kind := "call"
		if c.IsMemberFunction() {
			kind = "member"
		}
		w.open(e.ID(), kind)
		w.text(c.FunctionName())
		if c.IsMemberFunction() {
			w.node(c.Target())
		}
		for _, arg := range c.Args() {
			w.node(arg)
		}
	case ast.ListKind:
		w.open(e.ID(), "list")
		l := e.AsList()
		for i, element := range l.Elements() {
			w.optional(l.IsOptional(int32(i)))
			w.node(element)
		}
	case ast.MapKind:
		w.open(e.ID(), "map")
		for _, each := range e.AsMap().Entries() {
			entry := each.AsMapEntry()
			w.WriteByte(' ')
			w.open(each.ID(), "entry")
			w.optional(entry.IsOptional())
			w.node(entry.Key())
			w.node(entry.Value())
			w.WriteByte(')')
		}
	case ast.StructKind:
		w.open(e.ID(), "struct")
		w.text(e.AsStruct().TypeName())
		for _, each := range e.AsStruct().Fields() {
			field := each.AsStructField()
			w.WriteByte(' ')
			w.open(each.ID(), "field")
			w.optional(field.IsOptional())
			w.text(field.Name())
			w.node(field.Value())
			w.WriteByte(')')
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		w.open(e.ID(), "fold")
		w.node(c.IterRange())
		w.text(c.IterVar())
		w.text(c.IterVar2())
		w.text(c.AccuVar())
		w.node(c.AccuInit())
		w.node(c.LoopCondition())
		w.node(c.LoopStep())
		w.node(c.Result())
	default:
		w.open(e.ID(), "unspecified")
	}
	w.WriteByte(')')
}

var parseEnvironment *cel.Env

func init() {
	// cel.parse gives the tree that cel-go makes of an expression in Kubernetes' base environment, its cost and types
	// left aside.
	register("cel.parse", func(params json.RawMessage) (any, error) {
		var p parseParams
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		if parseEnvironment == nil {
			env, err := environment.MustBaseEnvSet(version.MajorMinor(1, 37)).Env(environment.NewExpressions)
			if err != nil {
				return nil, err
			}
			parseEnvironment = env
		}
		return parseOnce(p.Expression), nil
	})
}

// parseOnce takes a panic for a refusal: where a syntax error and a macro that copies its receiver meet, cel-go
// dereferences nil.
func parseOnce(expression string) (answer parseAnswer) {
	answer.Issues = []parseIssue{}
	defer func() {
		if cause := recover(); cause != nil {
			answer = parseAnswer{Issues: []parseIssue{{Message: fmt.Sprint("panic: ", cause)}}}
		}
	}()
	parsed, issues := parseEnvironment.Parse(expression)
	if issues.Err() != nil {
		for _, each := range issues.Errors() {
			answer.Issues = append(answer.Issues, parseIssue{each.Message, each.Location.Line(), each.Location.Column()})
		}
		return answer
	}
	answer.Accepted = true
	w := treeWriter{offsets: parsed.NativeRep().SourceInfo().OffsetRanges()}
	w.node(parsed.NativeRep().Expr())
	answer.Tree = w.String()
	return answer
}
