/** Loads compiled contracts with the names of their immutables. */
import { readFile } from 'node:fs/promises'
import type { ArtifactManager } from 'hardhat/types/artifacts'
import type { Compiled, Span } from './code.ts'

interface Artifact extends Omit<Compiled, 'immutables'> {
  readonly immutableReferences?: Readonly<Record<string, readonly Span[]>>
  readonly buildInfoId?: string
}

/** A syntax tree node of the Solidity compiler. */
interface Node {
  readonly id: number
  readonly nodeType: string
  readonly name?: string
  readonly mutability?: string
  readonly nodes?: readonly Node[]
}

/** Contract and name of each immutable, by the compiler's AST id. */
type Names = ReadonlyMap<string, string>

/** Key of a library's own address among the compiler's immutables (call protection). */
const LIBRARY_ADDRESS = 'library_deploy_address'

/** Reads compiled contracts by name. The syntax trees of a build are read once. */
export function compiledFrom(artifacts: ArtifactManager): (name: string) => Promise<Compiled> {
  const builds = new Map<string, Promise<Names>>()
  const namesOf = (id: string): Promise<Names> => {
    const known = builds.get(id) ?? readNames(artifacts, id)
    builds.set(id, known)
    return known
  }
  return async (name) => {
    const artifact = (await artifacts.readArtifact(name)) as unknown as Artifact
    const references = Object.entries(artifact.immutableReferences ?? {})
    const names = references.length === 0 ? new Map() : await namesOf(artifact.buildInfoId ?? '')
    const immutables = references.map(([id, spans]) => {
      const known = id === LIBRARY_ADDRESS ? id : names.get(id)
      if (known === undefined) throw new Error(`${name}: the build has no syntax tree of immutable ${id}`)
      return [known, spans] as const
    })
    return { ...artifact, immutables: Object.fromEntries(immutables) }
  }
}

async function readNames(artifacts: ArtifactManager, id: string): Promise<Names> {
  const path = await artifacts.getBuildInfoOutputPath(id)
  if (path === undefined) throw new Error(`the compiler's output of build "${id}" is missing: build again`)
  const { output } = JSON.parse(await readFile(path, 'utf8'))
  const sources: readonly { readonly ast: Node }[] = Object.values(output.sources)
  const contracts = sources
    .flatMap(({ ast }) => ast.nodes ?? [])
    .filter(({ nodeType }) => nodeType === 'ContractDefinition')
  return new Map(
    contracts.flatMap((contract) =>
      (contract.nodes ?? [])
        .filter(({ mutability }) => mutability === 'immutable')
        .map((node) => [`${node.id}`, `${contract.name}.${node.name}`] as const),
    ),
  )
}
