// A work item for each element of a parameter. `shape` is that of the parameter, its gradient and two states, `third`
// that of a third state.
typedef COMPUTE(P) T;

typedef struct {
  ACC lr, weight_decay, momentum, dampening, beta1, beta2, eps, lr_decay;
} Settings;

// Factors that are the same for all elements.
typedef struct {
  T rate, root, decay;
} Factors;

Factors find_factors(const Settings* s, ACC lr, ACC step) {
  Factors factors = {lr, 1, 1 - lr * s->weight_decay};
#if defined(op_adam) || defined(op_adamw)
  factors.rate = lr / (1 - pow(s->beta1, step));
  factors.root = sqrt(1 - pow(s->beta2, step));
#elif defined(op_adagrad)
  factors.rate = lr / (1 + (step - 1) * s->lr_decay);
#endif
  return factors;
}

__kernel void take_step(long count, Shape shape, Shape third_shape, Settings settings, __global const float* lr,
                   __global const float* steps, __global const float* grad_scale, __global const float* found_inf,
                   __global STORAGE(P) * parameter, __global STORAGE(G) * gradient, __global STORAGE(FIRST) * first,
                   __global STORAGE(SECOND) * second, __global STORAGE(THIRD) * third) {
  __local Factors shared;
  if (found_inf != 0 && *found_inf != 0) return;
  if (get_local_id(0) == 0) {
    shared = find_factors(&settings, lr != 0 ? (ACC)*lr : settings.lr, steps != 0 ? (ACC)*steps : (ACC)1);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const long i = get_global_id(0);
  if (i >= count) return;
  const Factors factors = shared;
#ifdef DENSE
  const Offsets at = {{i, i, i, i}};
  const long at_third = i;
#else
  const Offsets at = find_offsets(&shape, i);
  const long at_third = find_offsets(&third_shape, i).of[0];
#endif
  T p = LOAD(P, parameter, at.of[0]);
  T g = LOAD(G, gradient, at.of[1]);
  if (grad_scale != 0) {
    g /= *grad_scale;
    STORE(G, gradient, at.of[1], g);
  }
#ifdef MAXIMIZE
  g = -g;
#endif
#ifdef op_adamw
  p *= factors.decay;
#else
  g += (T)settings.weight_decay * p;
#endif
#if defined(op_sgd)
#ifdef MOMENTUM
#ifdef FIRST_STEP
  const T m = g;
#else
  const T m = (T)settings.momentum * LOAD(FIRST, first, at.of[2]) + (T)(1 - settings.dampening) * g;
#endif
  STORE(FIRST, first, at.of[2], m);
#ifdef NESTEROV
  g += (T)settings.momentum * m;
#else
  g = m;
#endif
#endif
  p -= factors.rate * g;
#elif defined(op_adagrad)
  const T v = LOAD(FIRST, first, at.of[2]) + g * g;
  STORE(FIRST, first, at.of[2], v);
  p -= factors.rate * g / (sqrt(v) + (T)settings.eps);
#else
  T m = LOAD(FIRST, first, at.of[2]);
  m += (T)(1 - settings.beta1) * (g - m);
  T v = (T)settings.beta2 * LOAD(SECOND, second, at.of[3]) + (T)(1 - settings.beta2) * g * g;
  STORE(FIRST, first, at.of[2], m);
  STORE(SECOND, second, at.of[3], v);
#ifdef AMSGRAD
  v = max((T)LOAD(THIRD, third, at_third), v);
  STORE(THIRD, third, at_third, v);
#endif
  p -= factors.rate * m / (sqrt(v) / factors.root + (T)settings.eps);
#endif
  STORE(P, parameter, at.of[0], p);
}
