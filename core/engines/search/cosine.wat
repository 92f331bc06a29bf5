;; Dot products of one query with many rows of 32-bit floats, four at a time: the readable form of the bytes in vectors.ts.
;; A width is the bytes of one row, a multiple of 64 (rows are padded with zeros); rows lie side by side.
(module
  (import "m" "m" (memory 1))
  (func (export "dots")
    (param $query i32) (param $rows i32) (param $count i32) (param $width i32) (param $scores i32)
    (local $end i32) (local $at i32) (local $stop i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local.set $end (i32.add (local.get $scores) (i32.shl (local.get $count) (i32.const 2))))
    (local.set $stop (i32.add (local.get $query) (local.get $width)))
    (block $done
      (loop $row
        (br_if $done (i32.ge_u (local.get $scores) (local.get $end)))
        (local.set $at (local.get $query))
        (local.set $a (v128.const i32x4 0 0 0 0))
        (local.set $b (v128.const i32x4 0 0 0 0))
        (local.set $c (v128.const i32x4 0 0 0 0))
        (local.set $d (v128.const i32x4 0 0 0 0))
        (loop $step
          (local.set $a (f32x4.add (local.get $a)
            (f32x4.mul (v128.load (local.get $at)) (v128.load (local.get $rows)))))
          (local.set $b (f32x4.add (local.get $b)
            (f32x4.mul (v128.load offset=16 (local.get $at)) (v128.load offset=16 (local.get $rows)))))
          (local.set $c (f32x4.add (local.get $c)
            (f32x4.mul (v128.load offset=32 (local.get $at)) (v128.load offset=32 (local.get $rows)))))
          (local.set $d (f32x4.add (local.get $d)
            (f32x4.mul (v128.load offset=48 (local.get $at)) (v128.load offset=48 (local.get $rows)))))
          (local.set $rows (i32.add (local.get $rows) (i32.const 64)))
          (br_if $step (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 64))) (local.get $stop))))
        (local.set $a (f32x4.add (f32x4.add (local.get $a) (local.get $b)) (f32x4.add (local.get $c) (local.get $d))))
        (f32.store (local.get $scores)
          (f32.add
            (f32.add (f32x4.extract_lane 0 (local.get $a)) (f32x4.extract_lane 1 (local.get $a)))
            (f32.add (f32x4.extract_lane 2 (local.get $a)) (f32x4.extract_lane 3 (local.get $a)))))
        (local.set $scores (i32.add (local.get $scores) (i32.const 4)))
        (br $row)))))
