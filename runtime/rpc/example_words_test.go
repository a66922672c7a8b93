package rpc_test

import (
	"context"
	"fmt"

	"godat/runtime/rpc"
)

// A program's log names the codes of errors as the library's texts do.
func ExampleCodeText() {
	fmt.Println(rpc.CodeText(rpc.CodeBusy), rpc.CodeText(rpc.CodeUser+1))
	// Output:
	// CodeBusy code 257
}

// What a context carries goes with each call, and each layer adds its own.
func ExampleMetadataOf() {
	ctx := rpc.WithMetadata(context.Background(), rpc.Metadata{"tenant": "blue"})
	ctx = rpc.WithMetadata(ctx, rpc.Metadata{"trace": "4bf92f"})
	fmt.Println(rpc.MetadataOf(ctx))
	// Output:
	// map[tenant:blue trace:4bf92f]
}
