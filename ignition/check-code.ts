/**
 * Checks a deployed contract: code, immutables, and creating transaction. Equal code alone proves nothing about
 * storage, which a constructor can write without an event.
 */
import { AbiCoder, Interface, type ParamType, type Provider, type Result } from 'ethers'
import { type Compiled, codeAt, creationCode, type Libraries } from './code.ts'
import { ANY, argumentsOf } from './constructors.ts'
import type { Creation, Creations } from './creations.ts'
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
  const compiled = await input.compiled(name)
  const subject = subjectOf(input, name, address, file)
  const { creation, deployment } = subject
  const found =
    typeof creation === 'string'
      ? creation
      : (creationDifference(subject, creation, compiled, deployment.contracts) ?? AS_DESCRIBED)
  return [
    ...(await checkRuntime(input, name, address, file)),
    finding(`creation of ${name} ${address}`, AS_DESCRIBED, found),
  ]
}

const AS_DESCRIBED = 'compiled code with the described arguments'

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

/** Null if the input is the compiled creation code with the described arguments and nothing else. */
function creationDifference(
  subject: Subject,
  { input }: Creation,
  compiled: Compiled,
  libraries: Libraries,
): string | null {
  const code = creationCode(compiled, libraries)
  if (!input.startsWith(code)) return `other creation code from byte ${firstDifference(input, code)} on`
  const types = new Interface(compiled.abi as never[]).deploy.inputs
  const data = `0x${input.slice(code.length)}`
  let found: Result
  try {
    found = coder.decode(types, data)
  } catch {
    return `constructor arguments that cannot be decoded: ${data}`
  }
  const expected = argumentsOf(subject).map((value, index) => (value === ANY ? found[index] : value))
  for (const [index, type] of types.entries()) {
    const [is, should] = [encoded(type, found[index]), encoded(type, expected[index])]
    if (is !== should)
      return `constructor argument ${type.name} ${shown(type, is)} instead of ${shown(type, should)}`
  }
  return coder.encode(types, expected) === data ? null : 'further bytes in the constructor arguments'
}

const coder = AbiCoder.defaultAbiCoder()
const encoded = (type: ParamType, value: unknown): string => coder.encode([type], [value])
const shown = (type: ParamType, data: string): string => text(coder.decode([type], data).toArray(true)[0])

function firstDifference(input: string, code: string): number {
  let at = 0
  while (at < code.length && input[at] === code[at]) at++
  return Math.floor(at / 2) - 1
}
