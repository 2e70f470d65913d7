/** Runs tests against contracts with faults, one after the other, in one process. Started by run.ts. */
import { globSync, readFileSync } from 'node:fs'
import { ContractFactory } from 'ethers'
import hre from 'hardhat'
import Mocha from 'mocha'
import { chain } from '../support/exchange.ts'
import { compile } from './solc.ts'
import type { Stage } from './targets.ts'

export interface Task {
  readonly id: number
  readonly stage: Stage
  readonly sources: Readonly<Record<string, string>>
}

export interface Verdict {
  readonly id: number
  /** The test that noticed; `null` if none did, `undefined` if the fault does not compile. */
  readonly noticed: string | null | undefined
}

/** Code without optimization outgrows the chain. */
Object.assign(hre.config.networks.default ?? {}, { allowUnlimitedContractSize: true })

// ---------------------------------------------------------------------- swapping code

interface Swap {
  readonly from: string
  readonly to: string
}

const current: { swap?: Swap } = {}
const LINK = /__\$[0-9a-f]{34}\$__/g

const codeOf = (contract: string): string => {
  const [path] = globSync(`artifacts/contracts/**/${contract}.json`)
  if (path === undefined) throw new Error(`${contract} is not built`)
  return JSON.parse(readFileSync(path, 'utf8')).bytecode
}

/** `data` with the code it begins with replaced, linked to the same libraries; `data` itself if it begins with another. */
function swapped(data: string, { from, to }: Swap): string {
  if (data.length < from.length) return data
  const libraries = new Map<string, string>()
  for (const { 0: place, index } of from.matchAll(LINK)) libraries.set(place, data.slice(index, index + 40))
  const link = (code: string): string => code.replaceAll(LINK, (place) => libraries.get(place) ?? place)
  return data.startsWith(link(from)) ? link(to) + data.slice(from.length) : data
}

const deploying = ContractFactory.prototype.getDeployTransaction
ContractFactory.prototype.getDeployTransaction = async function (...args) {
  const sent = await deploying.apply(this, args)
  return current.swap ? { ...sent, data: swapped(sent.data, current.swap) } : sent
}

// ---------------------------------------------------------------------- running tests

const suites = new Map<string, Promise<Mocha>>()

async function loaded(tests: readonly string[]): Promise<Mocha> {
  const mocha = new Mocha({ bail: true, timeout: 60_000, reporter: 'min' })
  mocha.reporter(class {} as never)
  mocha.cleanReferencesAfterRun(false)
  for (const file of globSync([...tests]).sort()) mocha.addFile(file)
  await mocha.loadFilesAsync()
  return mocha
}

async function firstFailure(tests: readonly string[]): Promise<string | null> {
  const key = tests.join()
  if (!suites.has(key)) suites.set(key, loaded(tests))
  const mocha = await (suites.get(key) as Promise<Mocha>)
  const { networkHelpers } = await chain()
  await networkHelpers.clearSnapshots()
  return new Promise((resolve) => {
    let title: string | null = null
    mocha
      .run(() => resolve(title))
      .on('fail', (test, error) => {
        title ??= `${test.fullTitle()}${process.env.MUTATION_DEBUG ? ` ${error.stack}` : ''}`
      })
  })
}

process.on('message', async ({ id, stage, sources }: Task) => {
  const to = compile(stage.path, stage.contract, sources)
  if (to === null) return process.send?.({ id, noticed: undefined })
  current.swap = { from: codeOf(stage.contract), to }
  const noticed = await firstFailure(stage.tests)
  process.send?.({ id, noticed } satisfies Verdict)
})
process.on('disconnect', () => process.exit())
process.send?.({ id: -1, noticed: null } satisfies Verdict)
