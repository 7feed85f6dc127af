package main

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
)

type versionVerdict struct {
	Accepted bool   `json:"accepted"`
	Text     string `json:"text,omitempty"`
	Major    string `json:"major,omitempty"`
	Minor    string `json:"minor,omitempty"`
	Patch    string `json:"patch,omitempty"`
}

func judgedVersion(v semver.Version, err error) versionVerdict {
	if err != nil {
		return versionVerdict{}
	}
	decimal := func(n uint64) string { return strconv.FormatUint(n, 10) }
	return versionVerdict{true, v.String(), decimal(v.Major), decimal(v.Minor), decimal(v.Patch)}
}

// tolerant is ParseTolerant as Kubernetes' CEL library has it: without the trimming of spaces, so that a text with
// spaces around it is refused.
func tolerant(text string) (semver.Version, error) {
	if strings.TrimSpace(text) != text {
		return semver.Version{}, errors.New("space around a version")
	}
	return semver.ParseTolerant(text)
}

func init() {
	register("semver.parse", func(params json.RawMessage) (any, error) {
		var p struct{ Text string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		return map[string]versionVerdict{
			"strict": judgedVersion(semver.Parse(p.Text)), "normalized": judgedVersion(tolerant(p.Text)),
		}, nil
	})

	register("semver.compare", func(params json.RawMessage) (any, error) {
		var p struct{ A, B string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		a, err := semver.Parse(p.A)
		if err != nil {
			return nil, err
		}
		b, err := semver.Parse(p.B)
		if err != nil {
			return nil, err
		}
		return a.Compare(b), nil
	})
}
