//go:build tools

// Package servers names the servers in Go that the tests start, so that go.mod and go.sum pin them with all that
// they are made of. They are apart from go-tools, whose libraries need other versions.
package servers

import _ "go.etcd.io/etcd/server/v3"
