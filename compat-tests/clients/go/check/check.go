// Package check runs the tests of a client and prints "name ok" or "name FAIL reason" lines.
package check

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"
)

const patience = 40 * time.Second

var failed bool

// Test runs one ability of a client; what takes longer than 40 seconds has failed.
func Test(name string, body func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- body(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(patience + 2*time.Second):
		err = fmt.Errorf("no end in time")
	}
	if err != nil {
		failed = true
		fmt.Printf("%s FAIL %s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Printf("%s ok\n", name)
}

// Exit ends the program: with 1 when a test failed.
func Exit() {
	if failed {
		os.Exit(1)
	}
}

// Unique is a name that no earlier run has used.
func Unique(prefix string) string { return fmt.Sprintf("%s-%x", prefix, Random(5)) }

// Random is noise that no codec makes smaller.
func Random(size int) []byte {
	raw := make([]byte, size)
	rand.Read(raw)
	return raw
}

// Until asks again and again; it fails with what was wanted when the context ends.
func Until(ctx context.Context, what string, done func() bool) error {
	for !done() {
		if ctx.Err() != nil {
			return fmt.Errorf("never: %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}
