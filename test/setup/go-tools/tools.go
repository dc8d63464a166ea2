//go:build tools

// Package tools names the Go programs that the tests run, so that go.mod and go.sum pin them with all
// that they are made of.
package tools

import (
	_ "github.com/compose-spec/compose-go/v2/cmd"
	_ "github.com/fullstorydev/grpcurl/cmd/grpcurl"
	_ "github.com/summerwind/h2spec/cmd/h2spec"
	_ "helm.sh/helm/v3/pkg/lint"
)
