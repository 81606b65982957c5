//! The control socket of a supervised shaper between the end of one shaper and the start of the next.

use std::path::Path;
use std::thread;
use std::time::Duration;

use lastmile_live::Error;
use lastmile_live::control::{Listener, Operator, Request, Verb};
use lastmile_live::stop::{Stop, StopHandle};

use super::operator::Answer;

/// Answers for this time, or until `stop`; true if it is time to stop, which a client may say, too.
pub(super) fn answer(control: &Path, stop: &Stop, pause: Duration) -> Result<bool, Error> {
    // Without its socket a shaper is started again all the same.
    let Ok(mut listener) = Listener::bind(control) else { return stop.within(pause) };
    // A SIGHUP is for the next shaper.
    let (end, no_hang_up) = (Stop::new()?, Stop::new()?);
    let (ending, mut between) = (end.handle()?, Between(stop.handle()?));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = stop.within(pause);
            ending.stop();
        });
        listener.serve(&end, &no_hang_up, &mut between)
    })?;
    stop.within(Duration::ZERO)
}

/// Nothing runs, and nothing but the end can be asked for.
struct Between(StopHandle);

impl Operator for Between {
    fn answer(&mut self, request: &str) -> String {
        let answer = match request.parse() {
            Ok(Request { r#do: Verb::Stop, .. }) => {
                self.0.stop();
                Answer::Done { message: "it ends".to_owned() }
            }
            Ok(_) => {
                let error = "the shaper ended, and another starts soon; the bridge carries packets".to_owned();
                Answer::Failed { error }
            }
            Err(error) => Answer::Failed { error },
        };
        answer.line()
    }

    fn hang_up(&mut self) {}
}
