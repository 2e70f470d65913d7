/** Requests the effect of an order from the exchange after each change of the ticket, and every few seconds while it is open. */
import { useEffect, useState } from 'preact/hooks'
import { ClearbatchError } from '../../client/errors.ts'
import type { Estimate, EstimateRequest } from '../../client/estimates.ts'
import { requireTrader } from '../account/trader.ts'

export interface Refusal {
  readonly code: string
  readonly message: string
  readonly field: string | null
  readonly nearest: string | null
  readonly nearestLeverage: number | null
}

export interface Estimated {
  readonly estimate: Estimate | null
  readonly refusal: Refusal | null
  readonly isPending: boolean
}

const DEBOUNCE_MS = 180
const REFRESH_MS = 3_000
const NONE: Estimated = { estimate: null, refusal: null, isPending: false }

const textOrNull = (value: unknown): string | null =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : null

export function refusalOf(error: unknown): Refusal {
  const message = (error as Error).message
  if (!(error instanceof ClearbatchError))
    return { code: 'PAGE', message, field: null, nearest: null, nearestLeverage: null }
  const { field, nearest_valid, nearest_valid_leverage } = error.details
  return {
    code: error.code,
    message,
    field: textOrNull(field),
    nearest: textOrNull(nearest_valid),
    nearestLeverage: typeof nearest_valid_leverage === 'number' ? nearest_valid_leverage : null,
  }
}

/** A bracket's fields are named `orders.<place>.<field>`, with the entry first. The field of an exit is its trigger. */
export function bracketRefusal(error: unknown, kinds: readonly string[]): Refusal {
  const refusal = refusalOf(error)
  const [, place = '0', field = null] = /^orders\.(\d)\.(.*)$/.exec(refusal.field ?? '') ?? []
  return { ...refusal, field: place === '0' ? field : (kinds[Number(place) - 1] ?? null) }
}

async function ask(request: EstimateRequest): Promise<Omit<Estimated, 'isPending'>> {
  try {
    const estimate = await requireTrader().orders.estimate(request)
    const found = estimate.estimate?.refusal ?? null
    const refusal = found && {
      code: found.code,
      message: found.message,
      field: found.field,
      nearest: found.nearest_valid,
      nearestLeverage: found.nearest_valid_leverage,
    }
    return { estimate, refusal }
  } catch (error) {
    return { estimate: null, refusal: refusalOf(error) }
  }
}

/** `request` is null while the ticket is incomplete, or without a signed-in account. */
export function useEstimate(request: EstimateRequest | null): Estimated {
  const [state, setState] = useState<Estimated>(NONE)
  const key = JSON.stringify(request, (_, value) => (typeof value === 'bigint' ? String(value) : value))
  useEffect(() => {
    if (request === null) {
      setState(NONE)
      return
    }
    let isCurrent = true
    setState((before) => ({ ...before, isPending: true }))
    const run = async (): Promise<void> => {
      const answer = await ask(request)
      if (isCurrent) setState({ ...answer, isPending: false })
    }
    const first = setTimeout(() => void run(), DEBOUNCE_MS)
    const again = setInterval(() => {
      if (!document.hidden) void run()
    }, REFRESH_MS)
    return () => {
      isCurrent = false
      clearTimeout(first)
      clearInterval(again)
    }
  }, [key])
  return state
}
