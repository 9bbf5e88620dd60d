// A team of work items for each line. `lines` is the shape of the lines' beginnings; `step` is the way along a line.
__kernel void softmax(Shape lines, long size, long out_step, long in_step, __global STORAGE(OUT) * out,
                      __global const STORAGE(IN) * in) {
  __local ACC shares[TEAM];
  const Offsets at = find_offsets(&lines, get_group_id(0));
  __global STORAGE(OUT)* to = out + at.of[0];
  __global const STORAGE(IN)* from = in + at.of[1];
  ACC share = -INFINITY;
  FOR_SHARE(i, size) share = greater_of(share, LOAD(IN, from, i * in_step));
  const ACC greatest = greatest_of_team(share, shares);
  share = 0;
  FOR_SHARE(i, size) share += exp((ACC)LOAD(IN, from, i * in_step) - greatest);
  const ACC sum = sum_of_team(share, shares);
  FOR_SHARE(i, size) {
    const ACC x = (ACC)LOAD(IN, from, i * in_step) - greatest;
#ifdef LOGARITHM
    const ACC result = x - log(sum);
#else
    const ACC result = exp(x) / sum;
#endif
    STORE(OUT, to, i * out_step, (COMPUTE(OUT))result);
  }
}

__kernel void softmax_backward(Shape lines, long size, long to_step, long grad_step, long out_step,
                               __global STORAGE(IN) * grad_in, __global const STORAGE(OUT) * grad_out,
                               __global const STORAGE(OUT) * out) {
  __local ACC shares[TEAM];
  const Offsets at = find_offsets(&lines, get_group_id(0));
  __global STORAGE(IN)* to = grad_in + at.of[0];
  __global const STORAGE(OUT)* grad = grad_out + at.of[1];
  __global const STORAGE(OUT)* result = out + at.of[2];
  ACC share = 0;
  FOR_SHARE(i, size) {
    const ACC g = LOAD(OUT, grad, i * grad_step);
#ifdef LOGARITHM
    share += g;
#else
    share += g * LOAD(OUT, result, i * out_step);
#endif
  }
  const ACC sum = sum_of_team(share, shares);
  FOR_SHARE(i, size) {
    const ACC g = LOAD(OUT, grad, i * grad_step);
    const ACC y = LOAD(OUT, result, i * out_step);
#ifdef LOGARITHM
    const ACC value = g - exp(y) * sum;
#else
    const ACC value = y * (g - sum);
#endif
    STORE(IN, to, i * to_step, (COMPUTE(IN))value);
  }
}
