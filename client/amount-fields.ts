/** Amounts in response bodies: a number for display, and an integer × 1e18 with the suffix `_e18_raw` for computation. */

export type Amounts<Name extends string> = { readonly [Key in Name]: number } & {
  readonly [Key in `${Name}_e18_raw`]: string
}
export type MaybeAmounts<Name extends string> = { readonly [Key in Name]: number | null } & {
  readonly [Key in `${Name}_e18_raw`]: string | null
}
