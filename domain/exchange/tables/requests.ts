/** Results of commands with a `client_request_id`. */
import type { RequestCompleted } from '../../journal/request-rows.ts'
import type { Seq } from '../../units.ts'
import { DocumentTable } from '../document-table.ts'
import type { StateCore } from '../table.ts'

export interface RequestRow extends Omit<RequestCompleted, 'kind'> {
  /** Sequence of its row in the accounts journal. */
  readonly seq: Seq
}

export const keyOfRequest = ({
  user_id,
  client_request_id,
}: Pick<RequestRow, 'user_id' | 'client_request_id'>): string => `${user_id}-${client_request_id}`

export const requestTable = (core: StateCore): DocumentTable<RequestRow> =>
  new DocumentTable<RequestRow>(core, { name: 'requests', seed: 27, keyOf: keyOfRequest })

/** Request keys by row sequence. A derived index: it follows the table. */
export class RequestOrder {
  /** Sequences, ascending, with gaps for removed requests. */
  #seqs: Seq[] = []
  readonly #keys = new Map<Seq, string>()

  constructor(requests: DocumentTable<RequestRow>) {
    requests.observe((before, after) => {
      if (before !== undefined) this.#keys.delete(before.seq)
      if (after !== undefined) this.#insert(after.seq, keyOfRequest(after))
    })
  }

  /** Keys of the first `most` requests completed with rows up to `seq`, in row order. */
  upTo(seq: number, most = Number.POSITIVE_INFINITY): string[] {
    const keys: string[] = []
    for (const one of this.#seqs) {
      if (one > seq || keys.length === most) break
      const key = this.#keys.get(one)
      if (key !== undefined) keys.push(key)
    }
    return keys
  }

  #insert(seq: Seq, key: string): void {
    this.#keys.set(seq, key)
    if (this.#seqs.length > 2 * this.#keys.size + 64) this.#drop()
    let at = this.#seqs.length
    while (at > 0 && (this.#seqs[at - 1] as Seq) > seq) at--
    if (this.#seqs[at - 1] !== seq) this.#seqs.splice(at, 0, seq)
  }

  /** Drops the sequences of removed requests. */
  #drop(): void {
    this.#seqs = this.#seqs.filter((seq) => this.#keys.has(seq))
  }
}
