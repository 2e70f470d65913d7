/** A rule of the contract with traders, and where its test is. */

export interface Rule {
  readonly id: string
  /** `<file>: <part of a title>` of the test that proves the rule, if it cannot be tested over HTTP alone. */
  readonly provenBy?: string
}

export const elsewhere = (id: string, provenBy: string): Rule => ({ id, provenBy })
