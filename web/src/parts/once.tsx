/** A part that is drawn again only when the round, the data's owner or the language changed. */
import { Component, type ComponentChildren, type FunctionComponent } from "preact";
import type { Say } from "./say";

interface Rounds {
  series: object;
  round: number;
  say: Say;
}

export function once<P extends Rounds>(draw: (props: P) => ComponentChildren): FunctionComponent<P> {
  class Once extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const { series, round, say } = this.props;
      return series !== next.series || round !== next.round || say.lang !== next.say.lang;
    }

    override render(props: P) {
      return draw(props);
    }
  }
  return (props: P) => <Once {...props} />;
}
