/** Market journal row about valid nonces of adjustments. */
/**
 * The account's adjustments with a nonce below `minimum` are invalid.
 * If `rollback` is true, the block left the chain and `before` is in force again.
 */
export interface MarginNoncesInvalidated {
  readonly kind: 'margin_nonces_invalidated'
  readonly rollback: boolean
  readonly account: string
  /** Decimal strings: the contract's nonces have 64 bits. */
  readonly before: string
  readonly minimum: string
  readonly block: number
  readonly tx_hash: string
  readonly log_index: number
  readonly at: number
}
