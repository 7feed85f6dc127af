// Package rosetta stands in for github.com/tonistiigi/go-rosetta, which the docker client imports to recognise an
// emulated macOS and which the Go module proxy doesn't serve. On Linux the answer is always no.
package rosetta

import "runtime"

// Enabled says whether the process runs under Rosetta 2.
func Enabled() bool { return false }

// NativeArch is the architecture of the processor.
func NativeArch() string { return runtime.GOARCH }
