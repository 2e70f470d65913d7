/** Checks one contract of a deployment: its code and its immutables. */
import type { Provider } from 'ethers'
import { type Compiled, codeAt } from './code.ts'
import type { Creations } from './creations.ts'
import type { Deployment } from './deployment.ts'
import { type Finding, finding, text } from './finding.ts'
import type { ExchangeParameters } from './handover.ts'
import { latchOf, type Subject, valuesOf } from './immutables.ts'
import type { MarketFile } from './market-file.ts'

export interface CodeInput {
  readonly provider: Provider
  readonly deployment: Deployment
  readonly exchange: ExchangeParameters
  readonly chainId: bigint
  readonly creations: Creations
  /** Compiled contracts by name. */
  readonly compiled: (name: string) => Promise<Compiled>
}

/** All contracts of the exchange, and the latch that the bank created. */
export async function checkExchangeCode(input: CodeInput): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const [name, address] of Object.entries(input.deployment.contracts)) {
    findings.push(...(await checkContract(input, name, address)))
    if (name === 'MarginBank') findings.push(...(await checkRuntime(input, 'PauseLatch', latchOf(address))))
  }
  return findings
}

export async function checkContract(
  input: CodeInput,
  name: string,
  address: string,
  file?: MarketFile,
): Promise<Finding[]> {
  return checkRuntime(input, name, address, file)
}

const subjectOf = (
  { deployment, exchange, chainId, creations }: CodeInput,
  name: string,
  address: string,
  file?: MarketFile,
): Subject => ({
  name,
  address,
  deployment,
  exchange,
  chainId,
  creation: creations.get(text(address)) ?? 'unknown',
  ...(file !== undefined && { file }),
})

/** The code of a contract, and each of its immutables wherever the code holds it. */
async function checkRuntime(input: CodeInput, name: string, address: string, file?: MarketFile) {
  const { provider, deployment } = input
  const compiled = await input.compiled(name)
  const { difference, immutables } = await codeAt(provider, address, compiled, deployment.contracts)
  const findings = [finding(`code of ${name} ${address}`, 'as compiled', difference ?? 'as compiled')]
  if (difference !== null) return findings
  const values = valuesOf(subjectOf(input, name, address, file))
  for (const [immutable, found] of immutables) {
    const expected = values[immutable]
    if (expected === null) continue
    const what = `${name} ${address}: immutable ${immutable}`
    findings.push(finding(what, expected ?? 'a value that ignition/immutables.ts defines', found))
  }
  return findings
}
