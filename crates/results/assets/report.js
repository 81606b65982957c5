/* built by web/ */
