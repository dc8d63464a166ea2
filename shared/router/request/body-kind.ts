// The kinds of body that an application understands; classes add XML.

export type BodyKind = 'json' | 'form' | 'multipart' | 'text';

export const bodyKinds: readonly BodyKind[] = ['json', 'form', 'multipart', 'text'];
