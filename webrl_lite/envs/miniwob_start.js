// Put behind the pages' own core.js by miniwob.py: begins the one episode of a page by itself, with the seed of its
// address, and tells the server how it ended. What an episode is stays the core's and the page's business.
{
  const end = core.endEpisode, seed = core.QueryString.seed;
  let begun = false;
  Math.seedrandom("load");  // what a page draws while it loads is the same for every seed

  // A page calls this when it has loaded; the core calls it again at the end, for a next episode that we do not have.
  core.startEpisode = () => {
    if (begun) return;
    begun = true;
    core.createDisplay();
    core.hideDisplay();
    document.getElementById("click-canvas").style.display = "none";
    core.cover_div = document.createElement("div");  // the cover over the page stays away
    core.EPISODE_MAX_TIME = 2 ** 31 - 1;  // milliseconds; the longest that a timer takes, 24 days
    core.countdownTimer = () => {};
    Math.seedrandom(seed);
    core.startEpisodeReal();
  };

  core.endEpisode = (...given) => {
    if (!begun || WOB_DONE_GLOBAL) return;
    try {
      end(...given);
    } finally {
      if (WOB_DONE_GLOBAL) {
        const report = new XMLHttpRequest();
        report.open("POST", "/ended", false);  // the click that ended it waits, so nothing happens in between
        report.send(JSON.stringify({
          page: location.pathname + location.search, reward: WOB_RAW_REWARD_GLOBAL, reason: String(WOB_REWARD_REASON ?? ""),
        }));
      }
    }
  };
}
