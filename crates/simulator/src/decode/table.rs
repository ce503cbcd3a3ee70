//! Opcode to family.

use super::form::Form;
use super::*;
use crate::program::{Operation, ScalarInstruction};
use crate::ptx::ast::Type;

/// The kind of arithmetic that a type belongs to.
enum Arithmetic {
    Integer,
    Float,
    Half,
    FloatPair,
}

fn arithmetic(form: &Form<'_, '_>) -> Result<Arithmetic, PtxError> {
    use Type as T;
    match form.peek_type() {
        Some(T::F32 | T::F64) => Ok(Arithmetic::Float),
        Some(T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2) => Ok(Arithmetic::Half),
        Some(T::F32x2) => Ok(Arithmetic::FloatPair),
        // The integer decoder refuses what is not an integer.
        Some(_) => Ok(Arithmetic::Integer),
        None => Err(form.missing("a type")),
    }
}

/// Decodes the operation of an instruction.
pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    if let Some(scalar) = scalar(form)? {
        return Ok(Operation::Scalar(scalar));
    }
    match form.instruction.opcode.text {
        "mov" => movement::mov(form),
        "cvta" => space::convert_address(form),
        "isspacep" => space::is_space(form),
        "mapa" => space::map_shared(form),
        "getctarank" => space::get_cta_rank(form),
        "bra" => control::branch(form),
        "brx" => control::branch_indexed(form),
        "exit" | "ret" => control::exit(form),
        "trap" => control::trap(form),
        "nanosleep" => control::nanosleep(form),
        "setmaxnreg" => control::set_max_registers(form),
        "griddepcontrol" => control::grid_dependency(form),
        "pmevent" => control::performance_event(form),
        "ld" | "ldu" => memory::load(form),
        "st" => memory::store(form),
        "prefetch" | "prefetchu" => memory::prefetch(form),
        "discard" | "applypriority" => memory::cache_control(form),
        "atom" => atomic::atom(form),
        "red" => atomic::red(form),
        "fence" => fence::fence(form),
        "membar" => fence::membar(form),
        "bar" => barrier::bar(form),
        "barrier" => barrier::barrier(form),
        "elect" => warp::elect(form),
        "activemask" => warp::active_mask(form),
        "shfl" => warp::shuffle(form),
        "vote" => warp::vote(form),
        "match" => warp::match_sync(form),
        "redux" => warp::redux(form),
        "mbarrier" => mbarrier::decode(form),
        "cp" => bulk::decode(form),
        "clusterlaunchcontrol" => launch_control::decode(form),
        "tcgen05" => tcgen05::decode(form),
        "multimem" => multimem::decode(form),
        "ldmatrix" => matrix::load(form),
        "stmatrix" => matrix::store(form),
        "mma" => matrix::mma(form),
        "tensormap" => tensor_map::decode(form),
        "wgmma" => wgmma::decode(form),
        "wmma" | "movmatrix" | "tex" | "tld4" | "txq" | "suld" | "sust" | "sured" | "istypep" | "alloca"
        | "stacksave" | "stackrestore" | "brkpt" | "vadd" | "vsub" | "vmin" | "vmax" | "video" | "addr" | "pinned" => {
            Err(form.unsupported(""))
        }
        _ => Err(form.unknown()),
    }
}

/// The per-lane instructions; `None` for all others.
fn scalar(form: &mut Form<'_, '_>) -> Result<Option<ScalarInstruction>, PtxError> {
    let opcode = form.instruction.opcode.text;
    let decoded = match opcode {
        "add" | "sub" => match arithmetic(form)? {
            Arithmetic::Integer => integer::add_or_subtract(form),
            Arithmetic::Float => float::binary(form),
            Arithmetic::Half => half::binary(form),
            Arithmetic::FloatPair => float::pair(form),
        },
        "mul" => match arithmetic(form)? {
            Arithmetic::Integer => integer::multiply(form),
            Arithmetic::Float => float::binary(form),
            Arithmetic::Half => half::binary(form),
            Arithmetic::FloatPair => float::pair(form),
        },
        "min" | "max" => match arithmetic(form)? {
            Arithmetic::Integer => integer::min_or_max(form),
            Arithmetic::Float => float::min_or_max(form),
            Arithmetic::Half => half::min_or_max(form),
            Arithmetic::FloatPair => Err(form.unsupported("")),
        },
        "neg" | "abs" => match arithmetic(form)? {
            Arithmetic::Integer => integer::unary(form),
            Arithmetic::Float => float::unary(form),
            Arithmetic::Half => half::unary(form),
            Arithmetic::FloatPair => Err(form.unsupported("")),
        },
        "fma" | "mad" => match arithmetic(form)? {
            Arithmetic::Integer if opcode == "mad" => integer::multiply_add(form),
            Arithmetic::Integer => Err(form.unknown()),
            Arithmetic::Float => float::fused_multiply_add(form),
            Arithmetic::Half => half::fused_multiply_add(form),
            Arithmetic::FloatPair => float::pair_fused_multiply_add(form),
        },
        "div" => match arithmetic(form)? {
            Arithmetic::Float => float::divide(form),
            _ => integer::divide(form),
        },
        "rem" => integer::divide(form),
        "addc" | "subc" => integer::add_or_subtract(form),
        "madc" => integer::multiply_add(form),
        "mul24" => integer::multiply(form),
        "mad24" => integer::multiply_add(form),
        "sad" => integer::absolute_difference(form),
        "dp4a" | "dp2a" => integer::dot_product(form),
        "rcp" | "sqrt" => float::root_or_reciprocal(form),
        "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => float::approximate(form),
        "copysign" => float::copy_sign(form),
        "testp" => float::test_property(form),
        "and" | "or" | "xor" => bits::logic(form),
        "not" => bits::not(form),
        "cnot" | "clz" | "popc" | "brev" => bits::unary(form),
        "lop3" => bits::lop3(form),
        "shl" | "shr" => bits::shift(form),
        "shf" => bits::funnel_shift(form),
        "bfe" => bits::extract_field(form),
        "bfi" => bits::insert_field(form),
        "bfind" => bits::find_leading(form),
        "fns" => bits::find_nth(form),
        "bmsk" => bits::bit_mask(form),
        "szext" => bits::extend(form),
        "prmt" => bits::permute(form),
        "setp" => compare::set_predicate(form),
        "set" => compare::set(form),
        "selp" => compare::select(form),
        "slct" => compare::select_by_sign(form),
        "cvt" => convert::convert(form),
        "createpolicy" => movement::create_policy(form),
        _ => return Ok(None),
    };
    decoded.map(Some)
}
