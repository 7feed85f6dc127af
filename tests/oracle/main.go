// Command oracle answers questions about upstream's Go libraries: one JSON request a line on standard input, one JSON
// answer a line on standard output, in the same order.
//
// A request is {"id":1,"verb":"quantity.parse","params":{...}}; its answer is {"id":1,"result":...}. What a library
// thinks of an input, such as "rejected", is a result. {"id":1,"failure":"..."} means that the question was wrong or
// that the library panicked. Requests run one after another, so the caller can tell which one hangs.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// verb answers one kind of question; its error means that params were not understood.
type verb func(params json.RawMessage) (any, error)

var verbs = map[string]verb{}

// register makes a verb known. Each verb's file calls it from init.
func register(name string, v verb) {
	if _, taken := verbs[name]; taken {
		panic("verb registered twice: " + name)
	}
	verbs[name] = v
}

type request struct {
	ID     int64           `json:"id"`
	Verb   string          `json:"verb"`
	Params json.RawMessage `json:"params"`
}

type answer struct {
	ID      int64           `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Failure string          `json:"failure,omitempty"`
}

// answerTo runs one request; whatever happens inside the verb becomes an answer.
func answerTo(line []byte) (reply answer) {
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return answer{Failure: "request is not understood: " + err.Error()}
	}
	reply.ID = req.ID
	defer func() {
		if cause := recover(); cause != nil {
			reply = answer{ID: req.ID, Failure: fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())}
		}
	}()
	v, known := verbs[req.Verb]
	if !known {
		return answer{ID: req.ID, Failure: "verb is not known: " + req.Verb}
	}
	result, err := v(req.Params)
	if err != nil {
		return answer{ID: req.ID, Failure: err.Error()}
	}
	reply.Result, err = encode(result)
	if err != nil {
		return answer{ID: req.ID, Failure: "result can't be encoded: " + err.Error()}
	}
	return reply
}

// encode is json.Marshal without the escaping meant for web pages.
func encode(value any) (json.RawMessage, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buffer.Bytes(), "\n"), nil
}

// serve answers every line of in until its end.
func serve(in io.Reader, out io.Writer) error {
	// Not a Scanner: it refuses lines above a fixed size, and a spec of 10 MB is a fair question.
	lines := bufio.NewReaderSize(in, 1<<16)
	replies := bufio.NewWriterSize(out, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			text, encodeErr := encode(answerTo(line))
			if encodeErr != nil {
				return encodeErr
			}
			// Flushed each time: an answer that waits in the buffer would be blamed on the next request.
			replies.Write(append(text, '\n'))
			if flushErr := replies.Flush(); flushErr != nil {
				return flushErr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}
