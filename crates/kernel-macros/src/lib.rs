//! The `#[kernel]` attribute for device code.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Error, ItemFn, ReturnType, Safety, parse_macro_input};

/// Makes an `unsafe fn` a kernel: an exported function with the `ptx-kernel` calling convention.
///
/// Parameters may be scalars, or pointers; whether a pointer parameter is an address or a structure that lives in the
/// kernel's parameter space is decided by the kernel table of the plan crate, which the builder applies to the IR.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    if !attribute.is_empty() {
        return Error::new(proc_macro2::Span::call_site(), "#[kernel] takes no arguments").to_compile_error().into();
    }
    let function = parse_macro_input!(item as ItemFn);
    if let Err(error) = check(&function) {
        return error.to_compile_error().into();
    }
    let ItemFn { attrs, vis, sig, block, .. } = function;
    let (name, inputs) = (&sig.ident, &sig.inputs);
    quote! {
        #(#attrs)*
        #[unsafe(no_mangle)]
        #vis unsafe extern "ptx-kernel" fn #name(#inputs) #block
    }
    .into()
}

fn check(function: &ItemFn) -> Result<(), Error> {
    let signature = &function.sig;
    if !matches!(signature.safety, Safety::Unsafe(_)) {
        return Err(Error::new_spanned(
            signature.fn_token,
            "a kernel must be an `unsafe fn`: its launch vouches for its pointers",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "a kernel cannot be generic: export one function per variant",
        ));
    }
    if !matches!(signature.output, ReturnType::Default) {
        return Err(Error::new_spanned(&signature.output, "a kernel returns nothing"));
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new_spanned(abi, "#[kernel] sets the calling convention itself"));
    }
    Ok(())
}
