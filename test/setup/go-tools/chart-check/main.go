// Checks a Helm chart with the libraries of Helm and Kubernetes themselves: lints it, renders it with
// the values of a file, reads what comes out as the API server would, strictly, and holds pods against
// the pod security standard "restricted". Prints the manifests, or what is wrong with exit code 1.
//
//	chart-check CHART VALUES [OBJECT]
//
// The templates find the object of that file, a manifest, in the cluster; without one they find nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

const namespace = "limits"

func main() {
	existing := cluster{}
	if len(os.Args) > 3 {
		object, err := chartutil.ReadValuesFile(os.Args[3])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		existing.object.Object = object
	}
	if err := check(os.Args[1], os.Args[2], existing); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func check(folder, valuesFile string, existing cluster) error {
	values, err := chartutil.ReadValuesFile(valuesFile)
	if err != nil {
		return err
	}
	for _, message := range lint.All(folder, values, namespace, true).Messages {
		if message.Severity >= support.WarningSev {
			return message
		}
	}
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: "sample", Namespace: namespace, IsInstall: true}
	// Merges with the chart's own values, and holds both against its schema.
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.RenderWithClientProvider(chart, all, existing)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	var problems []error
	for _, name := range names {
		if strings.HasSuffix(name, "NOTES.txt") {
			fmt.Printf("# %s\n", strings.ReplaceAll(files[name], "\n", "\n# "))
			continue
		}
		for _, manifest := range releaseutil.SplitManifests(files[name]) {
			if err := checkManifest(manifest); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w\n%s", name, err, manifest))
			}
			fmt.Printf("---\n%s\n", manifest)
		}
	}
	return errors.Join(problems...)
}

// checkManifest gives unknown fields, fields twice and values of another type. Kinds that others
// define are left to those who know them.
func checkManifest(manifest string) error {
	options := json.SerializerOptions{Yaml: true, Strict: true}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, options)
	object, kind, err := decoder.Decode([]byte(manifest), nil, nil)
	if runtime.IsNotRegisteredError(err) && kind != nil && kind.Group == "monitoring.coreos.com" {
		return nil
	}
	if err != nil {
		return err
	}
	switch pod := object.(type) {
	case *corev1.Pod:
		return checkSecurity(&pod.ObjectMeta, &pod.Spec)
	case *appsv1.Deployment:
		return checkSecurity(&pod.Spec.Template.ObjectMeta, &pod.Spec.Template.Spec)
	}
	return nil
}

// checkSecurity gives what a namespace that enforces the standard would refuse.
func checkSecurity(about *metav1.ObjectMeta, pod *corev1.PodSpec) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		return err
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, about, pod))
	if result.Allowed {
		return nil
	}
	return fmt.Errorf("pod security restricted: %s", result.ForbiddenDetail())
}

// cluster answers the lookups of templates for one object: a cluster that has it and nothing else.
type cluster struct {
	object unstructured.Unstructured
}

func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return lookup{object: c.object, kind: schema.FromAPIVersionAndKind(apiVersion, kind)}, true, nil
}

// lookup has of its interface what Helm calls for an object with a name.
type lookup struct {
	dynamic.NamespaceableResourceInterface
	object    unstructured.Unstructured
	kind      schema.GroupVersionKind
	namespace string
}

func (l lookup) Namespace(namespace string) dynamic.ResourceInterface {
	l.namespace = namespace
	return l
}

func (l lookup) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if l.object.GroupVersionKind() != l.kind || l.object.GetNamespace() != l.namespace || l.object.GetName() != name {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: l.kind.Group, Resource: l.kind.Kind}, name)
	}
	return &l.object, nil
}
