;; C[i, j] = sum over p of A[i, p] B[p, j], or += with add: n rows and m columns, both multiples of 4; byte addresses and strides.
;; A tile of 4 x 4 is 8 vectors of two float64. Multiply and add stay two operations, so each sum has the bits of plain JavaScript.
;; The text in engine.js is this module, made by wat2wasm of the package wabt and written in base64.
(module
  (import "e" "memory" (memory 1))
  (func (export "product") (param $C i32) (param $ci i32) (param $A i32) (param $ai i32) (param $ap i32) (param $B i32)
    (param $bp i32) (param $bj i32) (param $n i32) (param $k i32) (param $m i32) (param $add i32)
    (local $i i32) (local $j i32) (local $p i32) (local $x i32) (local $y i32) (local $c i32)
    (local $ai2 i32) (local $ai3 i32) (local $bj2 i32) (local $bj3 i32) (local $ci2 i32) (local $ci3 i32)
    (local $b01 v128) (local $b23 v128) (local $a v128)
    (local $s001 v128) (local $s023 v128) (local $s101 v128) (local $s123 v128) (local $s201 v128) (local $s223 v128) (local $s301 v128) (local $s323 v128)
    (local.set $ai2 (i32.shl (local.get $ai) (i32.const 1)))
    (local.set $ai3 (i32.add (local.get $ai2) (local.get $ai)))
    (local.set $bj2 (i32.shl (local.get $bj) (i32.const 1)))
    (local.set $bj3 (i32.add (local.get $bj2) (local.get $bj)))
    (local.set $ci2 (i32.shl (local.get $ci) (i32.const 1)))
    (local.set $ci3 (i32.add (local.get $ci2) (local.get $ci)))
    (loop $rows
      (local.set $j (i32.const 0))
      (loop $columns
        (local.set $x (i32.add (local.get $A) (i32.mul (local.get $i) (local.get $ai))))
        (local.set $y (i32.add (local.get $B) (i32.mul (local.get $j) (local.get $bj))))
        (local.set $c
          (i32.add
            (local.get $C)
            (i32.add (i32.mul (local.get $i) (local.get $ci)) (i32.shl (local.get $j) (i32.const 3)))))
        (local.set $s001 (v128.const i64x2 0 0))
        (local.set $s023 (v128.const i64x2 0 0))
        (local.set $s101 (v128.const i64x2 0 0))
        (local.set $s123 (v128.const i64x2 0 0))
        (local.set $s201 (v128.const i64x2 0 0))
        (local.set $s223 (v128.const i64x2 0 0))
        (local.set $s301 (v128.const i64x2 0 0))
        (local.set $s323 (v128.const i64x2 0 0))
        (local.set $p (local.get $k))
        (loop $terms
          (local.set $b01
            (v128.load64_lane 1 (i32.add (local.get $y) (local.get $bj)) (v128.load64_zero (local.get $y))))
          (local.set $b23
            (v128.load64_lane 1
              (i32.add (local.get $y) (local.get $bj3))
              (v128.load64_zero (i32.add (local.get $y) (local.get $bj2)))))
          (local.set $a (v128.load64_splat (local.get $x)))
          (local.set $s001 (f64x2.add (local.get $s001) (f64x2.mul (local.get $a) (local.get $b01))))
          (local.set $s023 (f64x2.add (local.get $s023) (f64x2.mul (local.get $a) (local.get $b23))))
          (local.set $a (v128.load64_splat (i32.add (local.get $x) (local.get $ai))))
          (local.set $s101 (f64x2.add (local.get $s101) (f64x2.mul (local.get $a) (local.get $b01))))
          (local.set $s123 (f64x2.add (local.get $s123) (f64x2.mul (local.get $a) (local.get $b23))))
          (local.set $a (v128.load64_splat (i32.add (local.get $x) (local.get $ai2))))
          (local.set $s201 (f64x2.add (local.get $s201) (f64x2.mul (local.get $a) (local.get $b01))))
          (local.set $s223 (f64x2.add (local.get $s223) (f64x2.mul (local.get $a) (local.get $b23))))
          (local.set $a (v128.load64_splat (i32.add (local.get $x) (local.get $ai3))))
          (local.set $s301 (f64x2.add (local.get $s301) (f64x2.mul (local.get $a) (local.get $b01))))
          (local.set $s323 (f64x2.add (local.get $s323) (f64x2.mul (local.get $a) (local.get $b23))))
          (local.set $x (i32.add (local.get $x) (local.get $ap)))
          (local.set $y (i32.add (local.get $y) (local.get $bp)))
          (br_if $terms (local.tee $p (i32.sub (local.get $p) (i32.const 1)))))
        (if (local.get $add)
          (then
            (local.set $s001 (f64x2.add (local.get $s001) (v128.load (i32.add (local.get $c) (i32.const 0)))))
            (local.set $s023 (f64x2.add (local.get $s023) (v128.load (i32.add (local.get $c) (i32.const 16)))))
            (local.set $s101
              (f64x2.add (local.get $s101) (v128.load (i32.add (i32.add (local.get $c) (local.get $ci)) (i32.const 0)))))
            (local.set $s123
              (f64x2.add
                (local.get $s123)
                (v128.load (i32.add (i32.add (local.get $c) (local.get $ci)) (i32.const 16)))))
            (local.set $s201
              (f64x2.add
                (local.get $s201)
                (v128.load (i32.add (i32.add (local.get $c) (local.get $ci2)) (i32.const 0)))))
            (local.set $s223
              (f64x2.add
                (local.get $s223)
                (v128.load (i32.add (i32.add (local.get $c) (local.get $ci2)) (i32.const 16)))))
            (local.set $s301
              (f64x2.add
                (local.get $s301)
                (v128.load (i32.add (i32.add (local.get $c) (local.get $ci3)) (i32.const 0)))))
            (local.set $s323
              (f64x2.add
                (local.get $s323)
                (v128.load (i32.add (i32.add (local.get $c) (local.get $ci3)) (i32.const 16)))))))
        (v128.store (i32.add (local.get $c) (i32.const 0)) (local.get $s001))
        (v128.store (i32.add (local.get $c) (i32.const 16)) (local.get $s023))
        (v128.store (i32.add (i32.add (local.get $c) (local.get $ci)) (i32.const 0)) (local.get $s101))
        (v128.store (i32.add (i32.add (local.get $c) (local.get $ci)) (i32.const 16)) (local.get $s123))
        (v128.store (i32.add (i32.add (local.get $c) (local.get $ci2)) (i32.const 0)) (local.get $s201))
        (v128.store (i32.add (i32.add (local.get $c) (local.get $ci2)) (i32.const 16)) (local.get $s223))
        (v128.store (i32.add (i32.add (local.get $c) (local.get $ci3)) (i32.const 0)) (local.get $s301))
        (v128.store (i32.add (i32.add (local.get $c) (local.get $ci3)) (i32.const 16)) (local.get $s323))
        (br_if $columns (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 4))) (local.get $m))))
      (br_if $rows (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (local.get $n))))))
