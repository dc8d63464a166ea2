// proto-set compiles interfaces as protoc does, and prints their descriptions and those of what they import: a JSON
// object of FileDescriptorProtos in base64, by file.
//
//	proto-set FOLDER FILE...
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func main() {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: os.Args[1:2]}),
	}
	compiled, err := compiler.Compile(context.Background(), os.Args[2:]...)
	if err != nil {
		log.Fatal(err)
	}
	files := map[string][]byte{}
	for _, file := range compiled {
		describe(file, files)
	}
	output := json.NewEncoder(os.Stdout)
	output.SetIndent("", "  ")
	if err := output.Encode(files); err != nil {
		log.Fatal(err)
	}
}

func describe(file protoreflect.FileDescriptor, files map[string][]byte) {
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(protoutil.ProtoFromFileDescriptor(file))
	if err != nil {
		log.Fatal(err)
	}
	files[file.Path()] = bytes
	for i := 0; i < file.Imports().Len(); i++ {
		describe(file.Imports().Get(i).FileDescriptor, files)
	}
}
