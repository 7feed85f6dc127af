package main

import (
	"encoding/json"
	"errors"
	"os"
	"runtime/debug"
	"time"
)

// ping checks the oracle itself: it returns what it got, or misbehaves in the way it is asked to, so that the
// client's handling of each kind of failure can be tested.
type ping struct {
	Echo   json.RawMessage `json:"echo"`
	Behave string          `json:"behave"`
}

func init() {
	register("ping", func(params json.RawMessage) (any, error) {
		var p ping
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		switch p.Behave {
		case "":
			return p.Echo, nil
		case "error":
			return nil, errors.New("asked to fail")
		case "panic":
			panic("asked to panic")
		case "hang":
			// Longer than any deadline, but an orphan must end by itself.
			time.Sleep(time.Minute)
			return nil, nil
		case "die":
			os.Stderr.WriteString("asked to die\n")
			os.Exit(3)
		case "overflow":
			debug.SetMaxStack(16 << 20) // only to be quick: the default is a gigabyte
			return depth(0), nil
		case "memory":
			var held [][]byte
			for {
				held = append(held, make([]byte, 64<<20))
				if len(held) > 1024 {
					return len(held), nil
				}
			}
		}
		return nil, errors.New("behaviour is not known: " + p.Behave)
	})
}

// depth ends in a stack overflow, which no Go program can recover from.
func depth(n int) int {
	if n < 0 {
		return 0
	}
	return depth(n+1) + 1
}
