package controller

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// writeQuota is a value as its node holds it. Rates in bytes and connections must be whole. Errors are *Error.
func writeQuota(op QuotaOp, kind quotaKind) (string, error) {
	switch kind {
	case doubleQuota:
		return javaDouble(op.Value), nil
	case longQuota:
		return writeWhole(op, "LONG", math.MinInt64, math.MaxInt64)
	case intQuota:
		return writeWhole(op, "INT", math.MinInt32, math.MaxInt32)
	case secretQuota:
		return "", &Error{Kind: UnknownServerError}
	}
	return "", &Error{InvalidRequest, "Invalid configuration key " + op.Key}
}

// writeWhole rounds down as Kafka does, from a millionth above, so that a negative value is never whole; what lies beyond the
// range becomes its end, and what is no number 0.
func writeWhole(op QuotaOp, name string, least, most int64) (string, error) {
	const epsilon = 1e-6
	whole := int64(0)
	switch v := op.Value + epsilon; {
	case v >= float64(most):
		whole = most
	case v <= float64(least):
		whole = least
	case !math.IsNaN(v):
		whole = int64(v)
	}
	if math.Abs(float64(whole)-op.Value) > epsilon {
		return "", &Error{InvalidRequest, fmt.Sprintf("Configuration %s must be a %s value", op.Key, name)}
	}
	return strconv.FormatInt(whole, 10), nil
}

// readQuota reads a value of a node: what Java takes for a double, but hexadecimal.
func readQuota(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	switch text {
	case "NaN", "+NaN", "-NaN":
		return math.NaN(), true
	case "Infinity", "+Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	text = strings.TrimRight(text, "dDfF")
	if strings.Trim(text, "+-.0123456789eE") != "" {
		return 0, false // of Go's own forms
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil || math.IsInf(v, 0)
}

// javaDouble is a number as Java's Double.toString writes it: with a point always, and with an exponent below 0.001 and from
// ten million on.
func javaDouble(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	if abs := math.Abs(v); v == 0 || abs >= 1e-3 && abs < 1e7 {
		return pointed(strconv.FormatFloat(v, 'f', -1, 64))
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(exponent)
	return pointed(digits) + "E" + strconv.Itoa(n)
}

func pointed(digits string) string {
	if strings.ContainsRune(digits, '.') {
		return digits
	}
	return digits + ".0"
}
