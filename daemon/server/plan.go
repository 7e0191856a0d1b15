package server

import (
	"reflect"

	"kring/wire"
)

// plan says where the error codes of a message lie: fields of its own, and those of structures it holds.
type plan struct {
	codes []int // fields of this structure
	inner []innerPlan
}

type innerPlan struct {
	field int
	kind  reflect.Kind // of the field: Slice of structures, Struct, or Pointer to one
	of    *plan
}

// planOf looks at a type once; nil where there is no error code. kmsg names each of them ErrorCode, and its types hold no circles.
func planOf(t reflect.Type) *plan {
	p := &plan{}
	for i := range t.NumField() {
		f := t.Field(i)
		of := f.Type
		switch {
		case f.Name == "ErrorCode" && of.Kind() == reflect.Int16:
			p.codes = append(p.codes, i)
			continue
		case of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer:
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || !f.IsExported() {
			continue
		}
		if inner := planOf(of); inner != nil {
			p.inner = append(p.inner, innerPlan{i, f.Type.Kind(), inner})
		}
	}
	if p.codes == nil && p.inner == nil {
		return nil
	}
	return p
}

// count counts the codes of v, a structure of the plan's type. It does not allocate.
func (p *plan) count(v reflect.Value, r *Request) {
	for _, i := range p.codes {
		if c := v.Field(i).Int(); c != 0 {
			r.Failed(wire.Code(c))
		}
	}
	for i := range p.inner {
		in := &p.inner[i]
		f := v.Field(in.field)
		switch in.kind {
		case reflect.Slice:
			for k := range f.Len() {
				in.of.count(f.Index(k), r)
			}
		case reflect.Pointer:
			if !f.IsNil() {
				in.of.count(f.Elem(), r)
			}
		default:
			in.of.count(f, r)
		}
	}
}

// countErrors counts every error code of an answer.
func (r *Request) countErrors(resp any) {
	v := reflect.ValueOf(resp).Elem()
	if r.api.plan == nil {
		if r.api.plan = planOf(v.Type()); r.api.plan == nil {
			r.api.plan = &plan{}
		}
	}
	r.api.plan.count(v, r)
}
