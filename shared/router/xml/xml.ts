// XML support, loaded only for applications with a controller that allows it.
import type { Limits } from '../limits.ts';

export interface Xml {
  /** Throws 400 for what is no XML, is too large, or fits no value; 415 for another encoding. */
  readXml(text: string, limits: Limits): unknown;
  /** Throws where the value has no JSON text. */
  writeXml(value: unknown): string;
}

export async function loadXml(): Promise<Xml> {
  const [{ readXml }, { writeXml }] = await Promise.all([
    import('./xml-reader.ts'),
    import('./xml-writer.ts'),
  ]);
  return { readXml, writeXml };
}
