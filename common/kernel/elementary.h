#pragma once
// elementary -- log, exp, sine and cosine in double, from + - * / alone.
//
// The last bits of a C library's results depend on its version and on the processor. These
// functions give the same bits on every machine, and so do the rotation tables and losses computed
// from them. The error is about 1e-15 relative (sine and cosine: absolute), far below that of the
// floats made from them. Pure; any thread.

double elementary_log(double x); // x finite and above 0, not denormal; anything else gives NaN
double elementary_exp(double x); // x within -700..700; beyond that 0 or infinity, NaN for NaN
// |x| up to 1e6; beyond that, and for NaN, both NaN.
void elementary_sine_cosine(double x, double *ret_sine, double *ret_cosine);
