/** Collects the signatures of reports from several signers, and verifies each before it counts. */
import type { Recover } from '../../domain/orders/order-hash.ts'
import { type FeedId, proofOf, type ReportHasher, signerOf } from '../../domain/prices/report-hash.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { SigningAnswer, SigningRequest } from '../../service/report-key.ts'
import type { ReportSigner } from '../ports.ts'
import type { PriceMetrics, Quorum, SignerFault, SigningOutcome } from './ports.ts'
import type { SignerSet } from './signer-sets.ts'

export interface QuorumPorts {
  readonly signers: readonly ReportSigner[]
  /** Signers and threshold that the oracle accepts for a feed's report observed at that time; null while unknown. */
  readonly setOf: (feedId: FeedId, observedAt: Millis) => SignerSet | null
  readonly digestOf: ReportHasher
  readonly recover: Recover
  readonly clock: Clock
  readonly metrics: Pick<PriceMetrics, 'signerFault'>
  readonly logger: Logger
  /** Bound of the wait for signers. */
  readonly deadlineMs: number
}

/** A signer that was late or unreachable is left out for this time, so that it does not delay every report by the deadline. */
const REST_MS = 1_000

/** The signatures of one report as they come in. */
interface Collection {
  readonly digest: Uint8Array
  readonly set: SignerSet
  readonly valid: Map<Address, string>
  /** The signers to which the value has moved too far. */
  readonly moveRefused: Set<Address>
}

export function createQuorum(ports: QuorumPorts): Quorum {
  const { signers, clock, deadlineMs } = ports
  const restsUntil = new Map<ReportSigner, number>()
  const faults = createFaultLog(ports)
  const isComplete = ({ set, valid }: Collection): boolean => valid.size >= set.threshold

  /** Signers among these whose signatures the oracle accepts; one under two names counts once. */
  const ableOf = ({ set }: Collection, among: readonly ReportSigner[]): readonly Address[] => [
    ...new Set(among.map(({ address }) => address).filter((address) => set.signers.has(address))),
  ]

  /** If those that refuse the move suffice to prevent a quorum: one signer alone cannot halt a feed that others keep waiting. */
  const isMoveTooLarge = (collection: Collection): boolean => {
    const { set, moveRefused } = collection
    const willing = ableOf(collection, signers).filter((address) => !moveRefused.has(address))
    return moveRefused.size > 0 && willing.length < set.threshold
  }

  /** All signers if too few are left for a quorum. */
  function askable(all: readonly Collection[]): readonly ReportSigner[] {
    const now = clock.now()
    const awake = signers.filter((signer) => (restsUntil.get(signer) ?? 0) <= now)
    return all.every((one) => ableOf(one, awake).length >= one.set.threshold) ? awake : signers
  }

  function fail(signer: ReportSigner, fault: 'LATE' | 'UNREACHABLE'): void {
    restsUntil.set(signer, clock.now() + REST_MS)
    faults.note(signer, fault)
  }

  function take(signer: ReportSigner, answers: readonly SigningAnswer[], all: readonly Collection[]): void {
    let fault: SignerFault | null = null
    for (const [at, collection] of all.entries()) fault = count(signer, answers[at], collection) ?? fault
    if (fault === null) faults.clear(signer)
    else faults.note(signer, fault)
  }

  function count(
    { address }: ReportSigner,
    answer: SigningAnswer | undefined,
    collection: Collection,
  ): SignerFault | null {
    if (answer === undefined) return 'NO_ANSWER'
    if ('refusal' in answer) {
      if (answer.refusal === 'MOVE_TOO_LARGE') collection.moveRefused.add(address)
      return answer.refusal
    }
    if (isComplete(collection)) return null
    if (!collection.set.signers.has(address)) return 'NOT_A_SIGNER'
    if (signerOf(collection.digest, answer.signature, ports.recover) !== address) return 'WRONG_SIGNATURE'
    if (collection.valid.has(address)) return 'DUPLICATE'
    collection.valid.set(address, answer.signature)
    return null
  }

  /** Resolves when every report is complete, every signer has answered, or the deadline has passed. */
  function gather(requests: readonly SigningRequest[], all: readonly Collection[]): Promise<void> {
    const waiting = new Set(askable(all))
    return new Promise((resolve) => {
      let isOver = false
      const end = (): void => {
        isOver = true
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        for (const signer of waiting) fail(signer, 'LATE')
        end()
      }, deadlineMs)
      const answered = (signer: ReportSigner, answers: readonly SigningAnswer[] | null): void => {
        if (isOver) return
        waiting.delete(signer)
        if (answers === null) fail(signer, 'UNREACHABLE')
        else take(signer, answers, all)
        if (waiting.size === 0 || all.every(isComplete)) end()
      }
      for (const signer of [...waiting])
        signer.sign(requests, deadlineMs).then(
          (answers) => answered(signer, answers),
          () => answered(signer, null),
        )
    })
  }

  return {
    async collect(requests) {
      const all = requests.map(({ feedId, reading }): Collection | null => {
        const set = ports.setOf(feedId, reading.observedAt)
        const digest = ports.digestOf(feedId, reading).slice()
        return set && { digest, set, valid: new Map(), moveRefused: new Set() }
      })
      const asked = requests.filter((_, at) => all[at] !== null)
      if (asked.length > 0)
        await gather(
          asked,
          all.filter((one) => one !== null),
        )
      return all.map((collection): SigningOutcome => {
        if (collection === null) return { proof: null, reason: 'NO_QUORUM' }
        if (isComplete(collection)) return { proof: proofOf(collection.valid) }
        return { proof: null, reason: isMoveTooLarge(collection) ? 'MOVE_TOO_LARGE' : 'NO_QUORUM' }
      })
    },
  }
}

/** Counts every fault, and logs the first of each kind of a signer until it signs again. */
function createFaultLog({ metrics, logger }: Pick<QuorumPorts, 'metrics' | 'logger'>) {
  const known = new Map<ReportSigner, SignerFault>()
  return {
    note(signer: ReportSigner, fault: SignerFault): void {
      metrics.signerFault(signer.name, fault)
      if (known.get(signer) === fault) return
      known.set(signer, fault)
      logger.warn({ signer: signer.name, address: signer.address, fault }, 'signer of price reports failed')
    },
    clear(signer: ReportSigner): void {
      if (known.delete(signer)) logger.info({ signer: signer.name }, 'signer of price reports signs again')
    },
  }
}
