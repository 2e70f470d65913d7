/** The result of the verification of a batch in this browser. */

export type Verdict =
  /** Recomputed with equal result, and equal to every settlement transaction. */
  | { readonly state: 'verified'; readonly transactions: number }
  /** Recomputed with equal result; not all parts are mined. Mined parts are equal. */
  | { readonly state: 'unmined'; readonly mined: number; readonly parts: number }
  /** Recomputed with equal result; its settlement failed, and its fills do not count. */
  | { readonly state: 'voided' }
  /** Recomputed with equal result, and compared with no chain. `reason` if the chosen node could not decide. */
  | { readonly state: 'recomputed'; readonly reason: string | null }
  | { readonly state: 'different'; readonly differences: readonly string[] }

export interface Verification {
  readonly verdict: Verdict
  /** Places in the statement of the own orders, from 1. */
  readonly own: readonly number[]
  readonly tookMs: number
}

export interface OwnCommitment {
  readonly orderHash: string
  readonly salt: string
}

/** From the page to the worker. */
export type ToWorker =
  | {
      readonly kind: 'verify'
      readonly id: number
      readonly proof: unknown
      readonly readAt: number
      readonly hasNode: boolean
      readonly own: readonly OwnCommitment[]
    }
  | { readonly kind: 'answer'; readonly call: number; readonly result?: unknown; readonly error?: string }

/** From the worker to the page. */
export type FromWorker =
  | { readonly kind: 'verification'; readonly id: number; readonly verification: Verification }
  | {
      readonly kind: 'call'
      readonly id: number
      readonly call: number
      readonly method: string
      readonly params: readonly unknown[]
    }
