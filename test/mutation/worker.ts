/** Runs tests against mutated contracts, one after the other, in one process. Started by run.ts. */
import { globSync, readFileSync } from 'node:fs'
import { ContractFactory } from 'ethers'
import hre from 'hardhat'
import Mocha from 'mocha'
import { restart } from '../support/exchange.ts'
import { compile } from './solc.ts'
import type { TestStage } from './targets.ts'

export interface Task {
  readonly id: number
  readonly stage: TestStage
  readonly sources: Readonly<Record<string, string>>
}

export interface Verdict {
  readonly id: number
  /** The test that killed the mutant; `null` if none did, `undefined` if the mutant does not compile. */
  readonly killedBy: string | null | undefined
}

/** Code compiled without optimization exceeds the chain's size limit. */
Object.assign(hre.config.networks.default ?? {}, { allowUnlimitedContractSize: true })

// ---------------------------------------------------------------------- swapping code

interface Swap {
  readonly from: string
  readonly to: string
}

const current: { swap?: Swap; swaps: number } = { swaps: 0 }
const LINK = /__\$[0-9a-f]{34}\$__/g

const codeOf = (contract: string): string => {
  const [path] = globSync(`artifacts/contracts/**/${contract}.json`)
  if (path === undefined) throw new Error(`no artifact of ${contract}; run npm run build:contracts`)
  return JSON.parse(readFileSync(path, 'utf8')).bytecode
}

/** Replaces the code at the start of `data`, with the same libraries linked; returns `data` unchanged if it starts with other code. */
function swapped(data: string, { from, to }: Swap): string {
  if (data.length < from.length) return data
  const libraries = new Map<string, string>()
  for (const { 0: place, index } of from.matchAll(LINK)) libraries.set(place, data.slice(index, index + 40))
  const link = (code: string): string => code.replaceAll(LINK, (place) => libraries.get(place) ?? place)
  if (!data.startsWith(link(from))) return data
  current.swaps++
  return link(to) + data.slice(from.length)
}

const deploying = ContractFactory.prototype.getDeployTransaction
ContractFactory.prototype.getDeployTransaction = async function (...args) {
  const sent = await deploying.apply(this, args)
  return current.swap ? { ...sent, data: swapped(sent.data, current.swap) } : sent
}

// ---------------------------------------------------------------------- running tests

const suites = new Map<string, Promise<Mocha>>()

/** A test file defines its suite only when it is first loaded, so each file has one suite for all stages. */
async function loaded(file: string): Promise<Mocha> {
  const mocha = new Mocha({ bail: true, timeout: 60_000, reporter: 'min' })
  mocha.reporter(class {} as never)
  mocha.cleanReferencesAfterRun(false)
  mocha.addFile(file)
  await mocha.loadFilesAsync()
  // The run limits the time of a mutant. A limit per test would kill mutants on a busy machine.
  mocha.suite.eachTest((test) => test.timeout(0))
  if (mocha.suite.total() === 0) throw new Error(`${file} defines no tests`)
  return mocha
}

async function failureIn(file: string): Promise<string | null> {
  if (!suites.has(file)) suites.set(file, loaded(file))
  const mocha = await (suites.get(file) as Promise<Mocha>)
  return new Promise((resolve) => {
    let title: string | null = null
    mocha
      .run(() => resolve(title))
      .on('fail', (test, error) => {
        title ??= `${test.fullTitle()}${process.env.MUTATION_DEBUG ? ` ${error.stack}` : ''}`
      })
  })
}

/** The files that killed mutants, the last one first: mutants of a function usually fail in the same file. */
const killers: string[] = []

function inOrder(tests: readonly string[]): string[] {
  const files = globSync([...tests]).sort()
  return [
    ...killers.filter((file) => files.includes(file)),
    ...files.filter((file) => !killers.includes(file)),
  ]
}

function addKiller(file: string): void {
  if (killers.includes(file)) killers.splice(killers.indexOf(file), 1)
  killers.unshift(file)
}

async function firstFailure(tests: readonly string[]): Promise<string | null> {
  await restart()
  for (const file of inOrder(tests)) {
    const failure = await failureIn(file)
    if (failure === null) continue
    addKiller(file)
    return failure
  }
  return null
}

process.on('message', async ({ id, stage, sources }: Task) => {
  const to = compile(stage.path, stage.contract, sources)
  if (to === null) return process.send?.({ id, killedBy: undefined })
  current.swap = { from: codeOf(stage.contract), to }
  current.swaps = 0
  const failure = await firstFailure(stage.tests)
  // Tests that deploy other code than the artifact would let every mutant survive.
  const isSwapped = failure !== null || current.swaps > 0
  const killedBy = isSwapped ? failure : 'the artifact is not the deployed code: npm run build:contracts'
  process.send?.({ id, killedBy } satisfies Verdict)
})
process.on('disconnect', () => process.exit())
process.send?.({ id: -1, killedBy: null } satisfies Verdict)
