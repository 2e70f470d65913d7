/** Single actions as JSON: amounts are decimal strings. The kind and `asOf` are stored beside the payload. */
import type { OracleReport } from '../settlement/settlement.ts'
import type { Address, HourlyFunding, Millis, Price } from '../units.ts'
import type { Deleverage, SessionReport, SingleAction, SingleKind, UpdateFunding } from './action.ts'

interface StoredReport {
  readonly price: string
  readonly observed_at: number
  readonly signatures: string
}

interface StoredPayloads {
  readonly update_funding: {
    readonly rate: string
    readonly valid_until: number
    readonly report: StoredReport
    readonly session: {
      readonly ends_at: number
      readonly observed_at: number
      readonly signatures: string
    } | null
  }
  readonly inherit_position: {
    readonly account: string
    readonly backstop: string
    readonly report: StoredReport
  }
  readonly deleverage: {
    readonly account: string
    readonly legs: readonly { readonly counterparty: string; readonly steps: number }[]
    readonly report: StoredReport
  }
  readonly finalize_market: { readonly report: StoredReport }
}

export type StoredPayload = StoredPayloads[SingleKind]

export function toStoredPayload(action: SingleAction): StoredPayload {
  const report = storedReport(action.report)
  switch (action.kind) {
    case 'update_funding':
      return {
        rate: action.rate.toString(),
        valid_until: action.validUntil,
        report,
        session: action.session && storedSession(action.session),
      }
    case 'inherit_position':
      return { account: action.account, backstop: action.backstop, report }
    case 'deleverage':
      return { account: action.account, legs: action.legs, report }
    case 'finalize_market':
      return { report }
  }
}

export function fromStoredPayload(kind: SingleKind, asOf: Millis, payload: StoredPayload): SingleAction {
  const stored = payload as StoredPayloads[keyof StoredPayloads]
  const common = { asOf, report: reportFrom(stored.report) }
  switch (kind) {
    case 'update_funding':
      return { kind, ...common, ...rateFrom(payload as StoredPayloads['update_funding']) }
    case 'inherit_position': {
      const { account, backstop } = payload as StoredPayloads['inherit_position']
      return { kind, ...common, account: account as Address, backstop: backstop as Address }
    }
    case 'deleverage': {
      const { account, legs } = payload as StoredPayloads['deleverage']
      return { kind, ...common, account: account as Address, legs: legs as Deleverage['legs'] }
    }
    case 'finalize_market':
      return { kind, ...common }
  }
}

/** The rate of a stored funding update. */
export const rateFrom = ({
  rate,
  valid_until,
  session,
}: Omit<StoredPayloads['update_funding'], 'report'>): Pick<
  UpdateFunding,
  'rate' | 'validUntil' | 'session'
> => ({
  rate: BigInt(rate) as HourlyFunding,
  validUntil: valid_until as Millis,
  session: session && sessionFrom(session),
})

const storedReport = ({ price, observedAt, signatures }: OracleReport): StoredReport => ({
  price: price.toString(),
  observed_at: observedAt,
  signatures,
})

const reportFrom = ({ price, observed_at, signatures }: StoredReport): OracleReport => ({
  price: BigInt(price) as Price,
  observedAt: observed_at as Millis,
  signatures: signatures as `0x${string}`,
})

const storedSession = ({ endsAt, observedAt, signatures }: SessionReport) => ({
  ends_at: endsAt as number,
  observed_at: observedAt as number,
  signatures,
})

const sessionFrom = (stored: NonNullable<StoredPayloads['update_funding']['session']>): SessionReport => ({
  endsAt: stored.ends_at as Millis,
  observedAt: stored.observed_at as Millis,
  signatures: stored.signatures as `0x${string}`,
})
