//go:build tools

// Package servers names the servers in Go that the tests start, so that go.mod and go.sum pin them with all that
// they are made of. Apart from go-tools: the API server's own modules have to be replaced by the released ones.
package servers

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
