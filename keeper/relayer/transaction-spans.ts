/** Spans of the transactions that settle parts of batches: signed, sent, mined. */
import { batchSpan, type SpanAttributes, type SpanRef, type Spans } from '../../service/spans.ts'
import type { Receipt } from '../ports.ts'

interface SignedNonce {
  readonly relayer: string
  readonly nonce: number
}

interface SignedPart {
  readonly marketId: number
  readonly batchId: number
  readonly part: number
  /** Time of the batch. */
  readonly asOf: number
}

interface Followed {
  readonly batch: SpanRef
  readonly attributes: SpanAttributes
  readonly signedAt: number
}

/** More than all lanes have in flight. An older part has no spans after its signature. */
const MOST_FOLLOWED = 1_000

export class TransactionSpans {
  readonly #spans: Spans
  /** By relayer and nonce: a replacement of a stuck transaction has the same. */
  readonly #followed = new Map<string, Followed>()

  constructor(spans: Spans) {
    this.#spans = spans
  }

  now = (): number => this.#spans.now()

  /** The part was signed between `startedAt` and now. */
  signed({ marketId, batchId, part, asOf }: SignedPart, sent: SignedNonce, startedAt: number): void {
    const batch = batchSpan(marketId, batchId, asOf)
    const attributes = {
      'clearbatch.batch': `${marketId}/${batchId}`,
      'clearbatch.part': part,
      'clearbatch.nonce': sent.nonce,
    }
    const signedAt = this.#spans.now()
    this.#spans.add({ name: 'sign part', parent: batch, startedAt, endedAt: signedAt, attributes })
    if (this.#followed.size >= MOST_FOLLOWED)
      this.#followed.delete(this.#followed.keys().next().value as string)
    this.#followed.set(keyOf(sent), { batch, attributes, signedAt })
  }

  /** The node has responded to a send that began at `startedAt`. */
  sent(sent: SignedNonce & { readonly hash: string }, startedAt: number, result: string): void {
    const followed = this.#followed.get(keyOf(sent))
    if (followed === undefined) return
    this.#spans.add({
      name: 'send transaction',
      kind: 'client',
      parent: followed.batch,
      startedAt,
      endedAt: this.#spans.now(),
      attributes: {
        ...followed.attributes,
        'clearbatch.tx_hash': sent.hash,
        'clearbatch.result': result,
      },
    })
  }

  /** The receipt is recorded. */
  mined(sent: SignedNonce, { hash, block, succeeded }: Receipt): void {
    const followed = this.#followed.get(keyOf(sent))
    if (followed === undefined) return
    this.#followed.delete(keyOf(sent))
    const attributes = { ...followed.attributes, 'clearbatch.tx_hash': hash }
    this.#spans.add({
      name: 'mine transaction',
      parent: followed.batch,
      startedAt: followed.signedAt,
      endedAt: this.#spans.now(),
      attributes: block === null ? attributes : { ...attributes, 'clearbatch.block': block },
      ...(!succeeded && { error: { code: 'reverted', isFault: true } }),
    })
  }
}

const keyOf = ({ relayer, nonce }: SignedNonce): string => `${relayer} ${nonce}`
