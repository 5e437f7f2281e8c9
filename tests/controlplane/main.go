// One binary with the parts of a Kubernetes control plane, for tests and the demo.
//
// It holds etcd, kube-apiserver, kube-controller-manager and kubectl, and picks one by the name it is
// called by (so symbolic links give the layout that $KUBEBUILDER_ASSETS expects) or by its first argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// command wraps a cobra command as a part that takes its arguments from os.Args.
func command(build func() *cobra.Command) func([]string) {
	return func(args []string) {
		os.Args = args
		os.Exit(cli.Run(build()))
	}
}

var parts = map[string]func([]string){
	"etcd":                    etcdmain.Main,
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
	"kubectl":                 runKubectl,
}

// runKubectl prints kubectl's errors the way the upstream command does.
func runKubectl(args []string) {
	os.Args = args
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err)
	}
}

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args
	if _, known := parts[name]; !known && len(args) > 1 {
		name, args = args[1], args[1:]
	}
	if run, known := parts[name]; known {
		run(args)
		return
	}
	names := make([]string, 0, len(parts))
	for part := range parts {
		names = append(names, part)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "name one of: %s\n", strings.Join(names, ", "))
	os.Exit(2)
}
